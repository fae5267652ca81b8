import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * A name node and a data node in one process. Arguments: directory of the data, port of the name node, settings. With
 * Kerberos, the process logs in as the name node.
 */
public class Hdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new HdfsConfiguration();
        settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, new File(arguments[0]).getAbsolutePath());
        settings.setInt("dfs.replication", 1);
        settings.set("dfs.namenode.http-address", "127.0.0.1:0");
        for (int i = 2; i < arguments.length; i++) {
            String[] setting = arguments[i].split("=", 2);
            settings.set(setting[0], setting[1]);
        }
        UserGroupInformation.setConfiguration(settings);
        if (UserGroupInformation.isSecurityEnabled()) {
            UserGroupInformation.loginUserFromKeytab(
                    settings.get("dfs.namenode.kerberos.principal"), settings.get("dfs.namenode.keytab.file"));
        }
        MiniDFSCluster cluster =
                new MiniDFSCluster.Builder(settings)
                        .nameNodePort(Integer.parseInt(arguments[1]))
                        .numDataNodes(1)
                        .build();
        cluster.waitActive();
        System.out.println("READY");
        Thread.currentThread().join();
    }
}
