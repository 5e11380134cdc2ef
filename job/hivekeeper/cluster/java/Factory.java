package hivekeeper;

/** Makes instances of classes that Python cannot name because they are not on the JVM's class path, in one gateway call. */
public class Factory {
  public Object make(Class<?> kind) throws Exception {
    return kind.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]);
  }

  /** By the only public constructor of the class, which takes this one argument. */
  public Object make(Class<?> kind, Object argument) throws Exception {
    return kind.getConstructors()[0].newInstance(new Object[] {argument});
  }
}
