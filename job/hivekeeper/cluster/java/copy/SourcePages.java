package hivekeeper.copy;

import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.page.DataPage;
import org.apache.parquet.column.page.DictionaryPage;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.column.page.PageReader;

/** The pages of a row group; fails for a dictionary that claims more values than it has bytes: a reader allocates what it claims. */
class SourcePages implements PageReadStore {
  private final PageReadStore pages;

  SourcePages(PageReadStore pages) {
    this.pages = pages;
  }

  public long getRowCount() {
    return pages.getRowCount();
  }

  public PageReader getPageReader(ColumnDescriptor column) {
    final PageReader reader = pages.getPageReader(column);
    return new PageReader() {
      public long getTotalValueCount() {
        return reader.getTotalValueCount();
      }

      public DataPage readPage() {
        return reader.readPage();
      }

      public DictionaryPage readDictionaryPage() {
        DictionaryPage page = reader.readDictionaryPage();
        if (page == null) return page;
        int size = page.getDictionarySize();
        int bytes = page.getUncompressedSize();
        if (size < 0 || size > bytes) throw new IllegalStateException("a dictionary of " + bytes + " bytes claims " + size + " values");
        return page;
      }
    };
  }
}
