package paimon.python;

/** A value from Python with its kind, which identifies the type of the value. */
public class Tagged {
  final String kind;
  final Object value;
  /** The keys of the files or tasks of a bucketed scan, as JSON; null: the scan is not bucketed. */
  final String keys;
  /** The properties of a scan, as JSON: see ScanEndpoint; null: the value is no scan. */
  final String description;
  /** The source of a scan's rows; null: the scan returns it on request. */
  final Tagged source;

  private Tagged(String kind, Object value, String keys, String description, Tagged source) {
    this.kind = kind;
    this.value = value;
    this.keys = keys;
    this.description = description;
    this.source = source;
  }

  public static Tagged of(String kind, Object value) {
    return new Tagged(kind, value, null, null, null);
  }

  public static Tagged withKeys(String kind, Object value, String keys) {
    return new Tagged(kind, value, keys, null, null);
  }

  /** A scan, in one answer with its description and its source: each further call would take as long as this one. */
  public static Tagged scan(Object handler, String description, String kind, Object value, String keys) {
    return new Tagged("scan", handler, null, description, kind == null ? null : Tagged.withKeys(kind, value, keys));
  }

  /** Two scans with their descriptions; the second handler may be null. */
  public static Tagged[] pair(Object first, String description, Object second, String secondDescription) {
    Tagged other = second == null ? null : Tagged.scan(second, secondDescription, null, null, null);
    return new Tagged[] {Tagged.scan(first, description, null, null, null), other};
  }
}
