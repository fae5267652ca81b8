package paimon.python;

/** A value from Python with its kind, which identifies the type of the value. */
public class Tagged {
  final String kind;
  final Object value;
  /** The keys of the files or tasks of a bucketed scan, as JSON; null: the scan is not bucketed. */
  final String keys;

  private Tagged(String kind, Object value, String keys) {
    this.kind = kind;
    this.value = value;
    this.keys = keys;
  }

  public static Tagged of(String kind, Object value) {
    return new Tagged(kind, value, null);
  }

  public static Tagged withKeys(String kind, Object value, String keys) {
    return new Tagged(kind, value, keys);
  }
}
