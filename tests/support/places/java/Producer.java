import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends records to Kafka, each once. A line of the input: topic, partition, key and value, with tabs between them; the
 * value \N is a tombstone. The line "flush" waits until the broker has every record, and prints "= " and their number.
 */
public class Producer {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("enable.idempotence", "true"); // the broker drops a record that is sent again
        settings.put("acks", "all");
        settings.put("delivery.timeout.ms", "300000"); // longer than a broker needs to start again
        settings.put("reconnect.backoff.max.ms", "500");
        List<Future<?>> sent = new ArrayList<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                if (line.equals("flush")) {
                    producer.flush();
                    for (Future<?> one : sent) one.get();
                    System.out.println("= " + sent.size());
                    sent.clear();
                } else {
                    String[] part = line.split("\t", 4);
                    String value = part[3].equals("\\N") ? null : part[3];
                    sent.add(producer.send(new ProducerRecord<>(part[0], Integer.valueOf(part[1]), part[2], value)));
                }
            }
        }
    }
}
