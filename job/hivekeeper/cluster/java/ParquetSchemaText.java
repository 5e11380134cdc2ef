package hivekeeper;

import java.io.IOException;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;

/**
 * A schema in the text that `schemas.py` reads back: like parquet-mr's, without the message's name, with `required` treated as `optional`.
 * A name that is not plain becomes a JSON string; in parquet-mr's text, `x = 5` or a name with a line end looks like something else.
 * An annotation that this library does not know is `UNKNOWN_15`, or `UNKNOWN_CONVERTED_22` if it is of the older kind.
 */
class ParquetSchemaText {
  private static final Pattern PLAIN = Pattern.compile("[A-Za-z0-9_]+");

  /** Whether any column is stored as INT96, and whether any is a date or another kind of timestamp. */
  boolean hasInt96;
  boolean hasDates;
  private final StringBuilder out = new StringBuilder("message schema {\n");

  private final Map<Integer, String> unknownTypes;
  /** Of the last field added, in the footer's list of elements, where the message is 0. */
  private int position;

  ParquetSchemaText(MessageType schema, Map<Integer, String> unknownTypes) throws IOException {
    this.unknownTypes = unknownTypes;
    addFields(schema, "  ");
    out.append("}");
  }

  String text() {
    return out.toString();
  }

  private void addFields(GroupType group, String indent) throws IOException {
    for (int i = 0; i < group.getFieldCount(); i++) add((Type) group.getFields().get(i), indent);
  }

  private void add(Type field, String indent) throws IOException {
    position++;
    boolean repeated = field.isRepetition(Type.Repetition.REPEATED);
    out.append(indent).append(repeated ? "repeated " : "optional ");
    out.append(field.isPrimitive() ? physical(field.asPrimitiveType()) : "group").append(" ").append(quoted(field.getName()));
    if (unknownTypes.containsKey(position)) addAnnotation((String) unknownTypes.get(position));
    else if (field.getLogicalTypeAnnotation() != null) addAnnotation(field.getLogicalTypeAnnotation().toString());
    if (field.getId() != null) out.append(" = ").append(field.getId().intValue());
    if (field.isPrimitive()) {
      out.append(";\n");
      return;
    }
    out.append(" {\n");
    addFields(field.asGroupType(), indent + "  ");
    out.append(indent).append("}\n");
  }

  private String physical(PrimitiveType type) {
    PrimitiveTypeName name = type.getPrimitiveTypeName();
    hasInt96 = hasInt96 || name == PrimitiveTypeName.INT96;
    String length = name == PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY ? "(" + type.getTypeLength() + ")" : "";
    return name.name().toLowerCase(Locale.ROOT) + length;
  }

  private void addAnnotation(String annotation) {
    hasDates = hasDates || annotation.equals("DATE") || annotation.startsWith("TIMESTAMP(");
    out.append(" (").append(annotation).append(")");
  }

  private static String quoted(String name) throws IOException {
    return PLAIN.matcher(name).matches() ? name : Json.write(name);
  }
}
