package hivekeeper;

import java.util.Collections;
import java.util.List;
import java.util.Map;

/** `model.Attributes` as sent between Python and Java: the metadata of a directory and its data files. */
public class DirectoryAttributes {
  public String owner;
  public String group;
  public int mode;
  public int fileMode;
  public List<String> acl = Collections.emptyList();
  public List<String> fileAcl = Collections.emptyList();
  public Map<String, String> xattrs = Collections.emptyMap();
  /** Policies in effect, null if the file system has none; "own" if the directory's parent has another one. */
  public String storagePolicy;
  public String ecPolicy;
  public boolean ownStoragePolicy;
  public boolean ownEcPolicy;
  public boolean hasMoreXattrs;
  public long directoryId;
  /** Of the files, if not the directory's; empty: as it is. */
  public String fileOwner;
  public String fileGroup;

  String ownerOfFiles() {
    return chosen(fileOwner, owner);
  }

  String groupOfFiles() {
    return chosen(fileGroup, group);
  }

  private static String chosen(String own, String general) {
    return own == null ? general : own.isEmpty() ? null : own;
  }
}
