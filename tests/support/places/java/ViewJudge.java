import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.TreeSet;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.function.Function;
import org.apache.paimon.function.FunctionImpl;
import org.apache.paimon.options.Options;
import org.apache.paimon.rest.requests.CreateFunctionRequest;
import org.apache.paimon.utils.JsonSerdeUtil;
import org.apache.paimon.view.View;
import org.apache.paimon.view.ViewImpl;
import org.apache.paimon.view.ViewSchema;

/**
 * The views and functions of a catalog of Java: options as arguments, then a command per line of the input; answers a
 * line "= ..." to each. A view or function is the JSON that Java gives it; it is the last word of a command.
 */
public class ViewJudge {
    private static Catalog catalog;

    public static void main(String[] arguments) throws Exception {
        System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8"));
        Options options = new Options();
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            options.set(argument.substring(0, at), argument.substring(at + 1));
        }
        catalog = CatalogFactory.createCatalog(CatalogContext.create(options));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String answer;
            try {
                answer = answer(line.split(" ", 3));
            } catch (Throwable error) {
                StringBuilder text = new StringBuilder("error");
                for (Throwable cause = error; cause != null; cause = cause.getCause()) text.append(" ").append(cause);
                answer = text.toString();
            }
            System.out.println("= " + answer.replace('\n', ' '));
            System.out.flush();
        }
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "views":
                return new TreeSet<>(catalog.listViews(words[1])).toString();
            case "functions":
                return new TreeSet<>(catalog.listFunctions(words[1])).toString();
        }
        Identifier name = Identifier.fromString(words[1]);
        switch (words[0]) {
            case "create_view":
                ViewSchema given = JsonSerdeUtil.fromJson(words[2], ViewSchema.class);
                catalog.createView(name, new ViewImpl(name, given.fields(), given.query(), given.dialects(),
                        given.comment(), given.options()), false);
                return "ok";
            case "view":
                View view = catalog.getView(name);
                return JsonSerdeUtil.toFlatJson(new ViewSchema(view.rowType().getFields(), view.query(),
                        view.dialects(), view.comment().orElse(null), view.options()));
            case "rename_view":
                catalog.renameView(name, Identifier.fromString(words[2]), false);
                return "ok";
            case "drop_view":
                catalog.dropView(name, false);
                return "ok";
            case "create_function":
                CreateFunctionRequest made = JsonSerdeUtil.fromJson(words[2], CreateFunctionRequest.class);
                Function function = new FunctionImpl(name, made.inputParams(), made.returnParams(),
                        made.isDeterministic(), made.definitions(), made.comment(), made.options());
                catalog.createFunction(name, function, false);
                return "ok";
            case "function":
                return JsonSerdeUtil.toFlatJson(new CreateFunctionRequest(catalog.getFunction(name)));
            case "drop_function":
                catalog.dropFunction(name, false);
                return "ok";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }
}
