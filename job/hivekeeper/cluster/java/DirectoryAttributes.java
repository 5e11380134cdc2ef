package hivekeeper;

import java.util.Collections;
import java.util.List;
import java.util.Map;

/** `model.Attributes` as it travels: what a directory and its data files carry besides their content. */
public class DirectoryAttributes {
  public String owner;
  public String group;
  public int mode;
  public int fileMode;
  public List<String> acl = Collections.emptyList();
  public List<String> fileAcl = Collections.emptyList();
  public Map<String, String> xattrs = Collections.emptyMap();
  /** Policies in effect, null where the file system has none; "own" where the directory's parent has another one. */
  public String storagePolicy;
  public String ecPolicy;
  public boolean ownStoragePolicy;
  public boolean ownEcPolicy;
}
