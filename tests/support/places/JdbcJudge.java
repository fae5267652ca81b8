import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
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

/** A catalog of Java: options as key=value, then commands as words joined by colons. Answers begin with "java: ". */
public class JdbcJudge {
    public static void main(String[] words) throws Exception {
        Options options = new Options();
        List<String> commands = new ArrayList<>();
        for (String word : words) {
            int at = word.indexOf('=');
            if (at > 0 && commands.isEmpty()) {
                options.set(word.substring(0, at), word.substring(at + 1));
            } else {
                commands.add(word);
            }
        }
        try (Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(options))) {
            for (String command : commands) {
                run(catalog, command.split(":"));
            }
        }
    }

    private static void run(Catalog catalog, String[] words) throws Exception {
        Identifier name = words.length > 2 ? Identifier.create(words[1], words[2]) : null;
        switch (words[0]) {
            case "database" -> catalog.createDatabase(words[1], true);
            case "create" -> catalog.createTable(name, Schema.newBuilder()
                    .column("k", DataTypes.INT().notNull()).column("v", DataTypes.STRING())
                    .primaryKey("k").option("bucket", "1").build(), false);
            case "set" -> catalog.alterTable(name, SchemaChange.setOption(words[3], words[4]), false);
            case "write" -> { // write:db:t:first:count:value  one commit for each row
                int first = Integer.parseInt(words[3]);
                for (int i = 0; i < Integer.parseInt(words[4]); i++) {
                    write(catalog.getTable(name), first + i, words[5]);
                }
            }
            case "read" -> answer(rows(catalog.getTable(name)));
            case "tables" -> answer(catalog.listTables(words[1]));
            case "databases" -> answer(catalog.listDatabases());
            case "properties" -> answer(new TreeMap<>(catalog.getDatabase(words[1]).options()));
            case "rename" -> catalog.renameTable(name, Identifier.create(words[1], words[3]), false);
            case "drop" -> catalog.dropTable(name, false);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void write(Table table, int key, String value) throws Exception {
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        try (BatchTableWrite write = builder.newWrite(); BatchTableCommit commit = builder.newCommit()) {
            write.write(GenericRow.of(key, BinaryString.fromString(value)));
            commit.commit(write.prepareCommit());
        }
    }

    private static List<String> rows(Table table) throws Exception {
        ReadBuilder builder = table.newReadBuilder();
        List<String> rows = new ArrayList<>();
        RecordReader<InternalRow> reader = builder.newRead().createReader(builder.newScan().plan());
        reader.forEachRemaining(row -> rows.add(row.getInt(0) + "=" + row.getString(1)));
        return rows;
    }

    private static void answer(Object value) {
        if (value instanceof List<?> list) {
            List<String> texts = new ArrayList<>();
            list.forEach(item -> texts.add(item.toString()));
            Collections.sort(texts);
            value = texts;
        }
        System.out.println("java: " + value);
    }
}
