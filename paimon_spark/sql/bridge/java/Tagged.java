package paimon.python;

/** A value from Python with its kind, which identifies the type of the value. */
public class Tagged {
  final String kind;
  final Object value;

  private Tagged(String kind, Object value) {
    this.kind = kind;
    this.value = value;
  }

  public static Tagged of(String kind, Object value) {
    return new Tagged(kind, value);
  }
}
