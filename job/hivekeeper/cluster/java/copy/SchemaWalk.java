package hivekeeper.copy;

import org.apache.parquet.io.api.Converter;
import org.apache.parquet.io.api.GroupConverter;
import org.apache.parquet.io.api.PrimitiveConverter;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.Type;

/** A tree of converters as a column reader wants it; no value goes through it. */
class SchemaWalk extends GroupConverter {
  private final GroupType group;

  SchemaWalk(GroupType group) {
    this.group = group;
  }

  public Converter getConverter(int index) {
    Type child = group.getType(index);
    return child.isPrimitive() ? (Converter) new PrimitiveConverter() {} : (Converter) new SchemaWalk(child.asGroupType());
  }

  public void start() {}

  public void end() {}
}
