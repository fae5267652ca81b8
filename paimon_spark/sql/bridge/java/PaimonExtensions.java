package paimon.python;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;

/**
 * Adds the parser, the rules and the table functions to an existing session, through its fields, and to sessions that
 * are created or cloned later, through Spark's extensions. A second call changes nothing.
 */
public class PaimonExtensions {
  private static final Set KNOWN = Collections.newSetFromMap(new WeakHashMap());
  private static final Set FILTERED = Collections.newSetFromMap(new WeakHashMap());

  public static synchronized void install(SparkSession session) throws Exception {
    SessionState state = session.sessionState();
    Analyzer analyzer = state.analyzer();
    Field parser = field(state, "sqlParser");
    Field rules = field(analyzer, "extendedResolutionRules");
    if (!(parser.get(state) instanceof PaimonParser)) {
      parser.set(state, new PaimonParser((ParserInterface) parser.get(state)));
    }
    ArrayList found = new ArrayList(CollectionConverters.asJava((Seq) rules.get(analyzer)));
    if (!holdsRule(found)) {
      found.add(new PaimonFunctionRule());  // before the row-level rule, which needs resolved statements
      found.add(new PaimonRowLevelRule(session));
      rules.set(analyzer, CollectionConverters.asScala(found).toSeq());
      Field hints = field(analyzer, "hintResolutionRules");  // before Spark compares columns
      ArrayList early = new ArrayList(CollectionConverters.asJava((Seq) hints.get(analyzer)));
      early.add(new SessionNamesRule(session));
      early.add(new PaimonRelationRule(session));
      early.add(new PaimonViewRule(session));
      early.add(new PaimonMergeSchemaRule(session));
      hints.set(analyzer, CollectionConverters.asScala(early).toSeq());
    }
    installFilters(session);
    SparkSessionExtensions extensions = session.extensions();
    if (KNOWN.add(extensions)) {
      extensions.injectParser(new ParserBuilder());
      extensions.injectResolutionRule(new FunctionRuleBuilder());
      extensions.injectResolutionRule(new RuleBuilder());
      extensions.injectHintResolutionRule(new SessionNamesRuleBuilder());
      extensions.injectHintResolutionRule(new RelationRuleBuilder());
      extensions.injectHintResolutionRule(new ViewRuleBuilder());
      extensions.injectHintResolutionRule(new MergeSchemaRuleBuilder());
      List functions = PaimonFunctions.descriptions();
      for (int i = 0; i < functions.size(); i++) {
        extensions.injectTableFunction((Tuple3) functions.get(i));
      }
    }
    if (KNOWN.add(state.tableFunctionRegistry())) {
      extensions.registerTableFunctions(state.tableFunctionRegistry());
    }
  }

  /** Add the rule for filters of reads to a session, and to those that are created later. */
  public static synchronized void installFilters(SparkSession session) throws Exception {
    if (session == null || evaluatesFilters(session)) {
      return;
    }
    Analyzer analyzer = session.sessionState().analyzer();
    Field rules = field(analyzer, "extendedResolutionRules");
    ArrayList found = new ArrayList(CollectionConverters.asJava((Seq) rules.get(analyzer)));
    found.add(0, new PaimonFilterRule(session));
    rules.set(analyzer, CollectionConverters.asScala(found).toSeq());
    if (FILTERED.add(session.extensions())) {
      session.extensions().injectResolutionRule(new FilterRuleBuilder());
    }
  }

  /** True if the analyzer of a session has the rule for filters of reads. */
  static boolean evaluatesFilters(SparkSession session) {
    Seq rules = session == null ? null : session.sessionState().analyzer().extendedResolutionRules();
    List found = rules == null ? Collections.emptyList() : CollectionConverters.asJava(rules);
    for (int i = 0; i < found.size(); i++) {
      if (found.get(i) instanceof PaimonFilterRule) {
        return true;
      }
    }
    return false;
  }

  private static boolean holdsRule(List rules) {
    for (int i = 0; i < rules.size(); i++) {
      if (rules.get(i) instanceof PaimonRowLevelRule) {
        return true;
      }
    }
    return false;
  }

  private static Field field(Object owner, String name) throws Exception {
    for (Class type = owner.getClass(); type != null; type = type.getSuperclass()) {
      Field[] fields = type.getDeclaredFields();
      for (int i = 0; i < fields.length; i++) {
        if (fields[i].getName().equals(name)) {
          fields[i].setAccessible(true);
          return fields[i];
        }
      }
    }
    throw new NoSuchFieldException(owner.getClass().getName() + "." + name);
  }
}

class ParserBuilder extends AbstractFunction2 {
  public Object apply(Object session, Object spark) {
    return spark instanceof PaimonParser ? spark : new PaimonParser((ParserInterface) spark);
  }
}

class RuleBuilder extends AbstractFunction1 {
  public Object apply(Object session) {
    return new PaimonRowLevelRule((SparkSession) session);
  }
}

class FunctionRuleBuilder extends AbstractFunction1 {
  public Object apply(Object session) {
    return new PaimonFunctionRule();
  }
}

class FilterRuleBuilder extends AbstractFunction1 {
  public Object apply(Object session) {
    return new PaimonFilterRule((SparkSession) session);
  }
}

class MergeSchemaRuleBuilder extends AbstractFunction1 {
  public Object apply(Object session) {
    return new PaimonMergeSchemaRule((SparkSession) session);
  }
}
