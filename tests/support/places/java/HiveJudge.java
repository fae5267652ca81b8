import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.types.DataTypes;

/** Java's HiveCatalog: options as arguments, then a command per line of the input; answers a line "= ..." to each. */
public class HiveJudge {
    private static Catalog catalog;

    public static void main(String[] arguments) throws Exception {
        Options options = new Options();
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            options.set(argument.substring(0, at), argument.substring(at + 1));
        }
        catalog = CatalogFactory.createCatalog(CatalogContext.create(options));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String answer;
            try {
                answer = answer(line.split(" "));
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
        if (words[0].equals("database")) {
            catalog.createDatabase(words[1], true);
            return "ok";
        }
        if (words[0].equals("tables")) return new TreeSet<>(catalog.listTables(words[1])).toString();
        Identifier name = Identifier.fromString(words[1]);
        switch (words[0]) {
            case "create": { // create db.t [option=value ...]: columns k, v, and d, a partition, if an option is "partition"
                Schema.Builder schema = Schema.newBuilder().column("k", DataTypes.INT().notNull()).column("v", DataTypes.STRING());
                boolean partitioned = false;
                for (int i = 2; i < words.length; i++) {
                    if (words[i].equals("partition")) partitioned = true;
                    else schema.option(words[i].split("=")[0], words[i].split("=")[1]);
                }
                if (partitioned) schema.column("d", DataTypes.STRING()).partitionKeys("d");
                else schema.primaryKey("k").option("bucket", "1");
                catalog.createTable(name, schema.build(), false);
                return "ok";
            }
            case "write": { // write db.t k v [d]
                Table table = catalog.getTable(name);
                BatchWriteBuilder builder = table.newBatchWriteBuilder();
                try (BatchTableWrite write = builder.newWrite(); BatchTableCommit commit = builder.newCommit()) {
                    GenericRow row = new GenericRow(words.length - 2);
                    row.setField(0, Integer.parseInt(words[2]));
                    for (int i = 3; i < words.length; i++) row.setField(i - 2, BinaryString.fromString(words[i]));
                    write.write(row);
                    commit.commit(write.prepareCommit());
                }
                return "ok";
            }
            case "read": {
                Table table = catalog.getTable(name);
                ReadBuilder builder = table.newReadBuilder();
                List<String> rows = new ArrayList<>();
                RecordReader<InternalRow> reader = builder.newRead().createReader(builder.newScan().plan());
                reader.forEachRemaining(row -> rows.add(row.getInt(0) + "=" + row.getString(1)));
                return String.join(",", new TreeSet<>(rows));
            }
            case "add": // add db.t column
                catalog.alterTable(name, SchemaChange.addColumn(words[2], DataTypes.BIGINT()), false);
                return "ok";
            case "columns":
                return catalog.getTable(name).rowType().getFieldNames().toString();
            case "rename":
                catalog.renameTable(name, Identifier.fromString(words[2]), false);
                return "ok";
            case "drop":
                catalog.dropTable(name, false);
                return "ok";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }
}
