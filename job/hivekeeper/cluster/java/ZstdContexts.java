package hivekeeper;

import com.github.luben.zstd.ZstdDecompressCtx;
import java.io.IOException;

/** Decompressors of Zstandard that write into an array at once, and keep no window of up to 128 MiB outside the heap. */
public class ZstdContexts {
  private ZstdContexts() {}

  /** To be closed. */
  public static ZstdDecompressCtx open() throws IOException {
    try {
      return new ZstdDecompressCtx();
    } catch (LinkageError failed) {
      String place = System.getProperty("java.io.tmpdir");
      throw new IOException("it is compressed with Zstandard, whose library cannot be loaded from " + place + " (mounted noexec?)", failed);
    }
  }
}
