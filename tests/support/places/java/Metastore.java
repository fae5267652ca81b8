import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;

/** A Hive metastore on a Derby database in memory. Arguments: port, directory of the warehouse, seconds until a lock expires. */
public class Metastore {
    private static final String PACKAGE = "org.apache.hadoop.hive.metastore.";

    public static void main(String[] arguments) throws Throwable {
        Configuration configuration = MetastoreConf.newMetastoreConf();
        String[][] settings = {
            {"metastore.thrift.port", arguments[0]},
            {"metastore.thrift.uris", ""},
            {"metastore.thrift.bind.host", "127.0.0.1"},
            {"metastore.warehouse.dir", arguments[1]},
            {"metastore.warehouse.external.dir", arguments[1]},
            {"javax.jdo.option.ConnectionURL", "jdbc:derby:memory:metastore;create=true"},
            {"javax.jdo.option.ConnectionDriverName", "org.apache.derby.jdbc.EmbeddedDriver"},
            {"datanucleus.schema.autoCreateAll", "true"},
            {"metastore.schema.verification", "false"},
            {"metastore.expression.proxy", PACKAGE + "DefaultPartitionExpressionProxy"},
            {"metastore.event.db.notification.api.auth", "false"},
            {"metastore.metadata.transformer.class", " "},
            {"metastore.task.threads.always", PACKAGE + "events.EventCleanerTask"},
            {"metastore.txn.timeout", arguments[2] + "s"},
            {"metastore.timedout.txn.reaper.start", "1s"},
            {"metastore.timedout.txn.reaper.interval", "1s"},
            {"hive.txn.xlock.write", "false"},
        };
        for (String[] setting : settings) {
            configuration.set(setting[0], setting[1]);
            System.setProperty(setting[0], setting[1]);
        }
        for (String name : new String[] {"utils.TestTxnDbUtil", "txn.TxnDbUtil"}) {
            try { // DataNucleus does not create the tables of locks
                Class.forName(PACKAGE + name).getMethod("prepDb", Configuration.class).invoke(null, configuration);
                String tasks = PACKAGE + "events.EventCleanerTask," + PACKAGE + "txn.AcidHouseKeeperService";
                configuration.set("metastore.task.threads.always", tasks); // the second gives up the locks of the dead
                System.setProperty("metastore.task.threads.always", tasks);
                break;
            } catch (ReflectiveOperationException missing) {
                System.out.println(name + ": " + missing);
            }
        }
        HiveMetaStore.main(new String[] {"-p", arguments[0]});
    }
}
