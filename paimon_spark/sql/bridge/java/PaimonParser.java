package paimon.python;

import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SimpleMode$;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.types.StructType;

/**
 * A parser in front of Spark's. Python parses texts that start with the first word of a Paimon-specific statement and
 * contain its second word; Spark's parser gets all other texts unchanged.
 */
public class PaimonParser implements ParserInterface {
  /** The handler of the statements: "parse" of a text returns null or {title, schema}, "run" runs one. */
  private static volatile Object handler;

  /** Pairs of words, in upper case. */
  private static final CopyOnWriteArrayList WORDS = new CopyOnWriteArrayList();

  /** The modes of EXPLAIN; for a command, all show the same text. */
  private static final String[] MODES = {"EXTENDED", "FORMATTED", "COST", "CODEGEN"};

  private final ParserInterface spark;

  public PaimonParser(ParserInterface spark) {
    this.spark = spark;
  }

  /** Set the handler of the statements. */
  public static void handleWith(Object handler) {
    PaimonParser.handler = handler;
  }

  /** Let statements with these words reach Python. */
  public static void register(String first, String second) {
    for (int i = 0; i < WORDS.size(); i++) {
      String[] known = (String[]) WORDS.get(i);
      if (known[0].equals(first) && known[1].equals(second)) {
        return;
      }
    }
    WORDS.add(new String[] {first, second});
  }

  public LogicalPlan parsePlan(String text) throws ParseException {
    LogicalPlan own = parseOwn(text);
    return own == null ? PaimonExplain.of(PaimonAlter.marked(spark.parsePlan(text))) : own;
  }

  /** Parse a text with parameters. Paimon-specific statements have no parameters. */
  public LogicalPlan parsePlanWithParameters(String text, ParameterContext parameters) throws ParseException {
    LogicalPlan own = parseOwn(text);
    return own == null ? PaimonExplain.of(PaimonAlter.marked(spark.parsePlanWithParameters(text, parameters))) : own;
  }

  /** Return the command of a Paimon-specific statement; null: the text is for Spark's parser. */
  private LogicalPlan parseOwn(String text) {
    int explained = afterExplain(text);
    if (explained > 0) {
      String inner = text.substring(0, explained).replaceAll("\\S", " ") + text.substring(explained);
      LogicalPlan own = parseOwn(inner);
      return own == null ? null : new ExplainCommand(own, SimpleMode$.MODULE$);
    }
    if (!isCandidate(text)) {
      return null;
    }
    Object[] found = (Object[]) Bridge.call(handler, "parse", new Object[] {text});
    if (found == null) {
      return null;
    }
    String columns = (String) found[1];
    StructType schema = columns.isEmpty() ? new StructType() : StructType.fromDDL(columns);
    return new PaimonCommand((String) found[0], handler, "run", text, schema, null);
  }

  /** Return the position after EXPLAIN and its mode; 0: the text does not start with EXPLAIN. */
  private static int afterExplain(String text) {
    int at = skipBlanks(text);
    if (!isWord(text, at, "EXPLAIN")) {
      return 0;
    }
    at += "EXPLAIN".length();
    int mode = skipBlanks(text.substring(at)) + at;
    for (int i = 0; i < MODES.length; i++) {
      if (isWord(text, mode, MODES[i])) {
        return mode + MODES[i].length();
      }
    }
    return at;
  }

  private static boolean isWord(String text, int at, String word) {
    int end = at + word.length();
    return text.regionMatches(true, at, word, 0, word.length())
        && (end == text.length() || !Character.isJavaIdentifierPart(text.charAt(end)));
  }

  private static boolean isCandidate(String text) {
    int start = skipBlanks(text);
    for (int i = 0; i < WORDS.size(); i++) {
      String[] words = (String[]) WORDS.get(i);
      if (text.regionMatches(true, start, words[0], 0, words[0].length()) && holds(text, words[1])) {
        return true;
      }
    }
    return false;
  }

  private static boolean holds(String text, String word) {
    for (int i = 0; i + word.length() <= text.length(); i++) {
      if (text.regionMatches(true, i, word, 0, word.length())) {
        return true;
      }
    }
    return false;
  }

  /** Return the position of the first character that is neither blank nor in a comment. */
  private static int skipBlanks(String text) {
    int at = 0;
    int depth = 0;
    while (at < text.length()) {
      if (text.startsWith("/*", at)) {
        depth++;
        at += 2;
      } else if (depth > 0) {
        boolean closes = text.startsWith("*/", at);
        depth -= closes ? 1 : 0;
        at += closes ? 2 : 1;
      } else if (text.startsWith("--", at)) {
        while (at < text.length() && text.charAt(at) != '\r' && text.charAt(at) != '\n') {
          at += text.startsWith("\\\n", at) ? 2 : 1;  // a backslash continues a comment of Spark
        }
      } else if (Character.isWhitespace(text.charAt(at))) {
        at++;
      } else {
        return at;
      }
    }
    return at;
  }

  /*DELEGATES*/
}
