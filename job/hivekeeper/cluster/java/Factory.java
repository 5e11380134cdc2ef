package hivekeeper;

/** Creates instances, in one gateway call, of classes that Python cannot name because they are not on the JVM's class path. */
public class Factory {
  public Object make(Class<?> kind) throws Exception {
    return kind.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]);
  }

  /** Uses the only public constructor of the class, which takes this one argument. */
  public Object make(Class<?> kind, Object argument) throws Exception {
    return kind.getConstructors()[0].newInstance(new Object[] {argument});
  }
}
