import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.rest.RESTCatalogServer;
import org.apache.paimon.rest.auth.BearTokenAuthProvider;
import org.apache.paimon.rest.responses.ConfigResponse;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.RowType;

/**
 * The test server of the REST catalog of Paimon. Arguments: the directory of the warehouse, the bearer token, and
 * options key=value that the server gives to its clients. It prints READY and its address.
 *
 * <p>Commands, one a line on standard input, each answered with DONE: "lose" makes the next commit fail after it is
 * done; "deny db.table"; "filter db.table column number" hides rows whose BIGINT column, the first one, is another.
 */
public class RestServer {
    public static void main(String[] args) throws Exception {
        Map<String, String> defaults = new HashMap<>();
        defaults.put("prefix", "paimon");
        defaults.put("header.test-header", "test-value");
        defaults.put("data-token.enabled", "false");
        defaults.put("warehouse", "main");
        for (String option : Arrays.asList(args).subList(2, args.length)) {
            String[] pair = option.split("=", 2);
            defaults.put(pair[0], pair[1]);
        }
        RESTCatalogServer server =
                new RESTCatalogServer(
                        "file:" + args[0],
                        new BearTokenAuthProvider(args[1]),
                        new ConfigResponse(defaults, new HashMap<>()),
                        "main");
        server.start();
        System.out.println("READY " + server.getUrl());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.trim().split(" ");
            if (words[0].equals("lose")) {
                RESTCatalogServer.commitSuccessThrowException = true;
            } else if (words[0].equals("deny")) {
                server.addNoPermissionTable(Identifier.fromString(words[1]));
            } else if (words[0].equals("filter")) {
                RowType type = RowType.builder().field(words[2], DataTypes.BIGINT()).build();
                Predicate rows = new PredicateBuilder(type).equal(0, Long.parseLong(words[3]));
                server.setRowFilterAuth(Identifier.fromString(words[1]), Collections.singletonList(rows));
            }
            System.out.println("DONE " + line);
        }
        System.exit(0);
    }
}
