import LMDB
import SystemPackage
import TestSupport

@testable import Larder

/// The pages of a store's index, to be damaged.
enum IndexPages {
    static func data(_ path: FilePath) -> FilePath { path.appending("index/data.mdb") }

    /// Overwrites a page with zeros.
    static func wipe(_ page: UInt64, _ path: FilePath) throws {
        let file = try FileDescriptor.open(data(path), .readWrite)
        _ = try file.closeAfter {
            try file.writeAll(toAbsoluteOffset: Int64(page) * 4096, [UInt8](repeating: 0, count: 4096))
        }
    }

    /// The pages of trees, by the damage that a walk reports when each is wiped.
    static func leaf(of tree: String, _ path: FilePath) throws -> UInt64 {
        let good = try TestFiles.read(data(path))
        for page in 2..<UInt64(good.count / 4096) {
            guard good[Int(page) * 4096 + 10] == 2 else { continue }
            var bytes = good
            for offset in 0..<4096 { bytes[Int(page) * 4096 + offset] = 0 }
            let pages = MemoryPages(bytes)
            guard let meta = try MetaPage.all(pages).first else { continue }
            var walk = PageWalk(pages, meta, isTolerant: true)
            try walk.run()
            if walk.damages.first?.tree == tree, walk.damages.first?.page == page { return page }
        }
        throw LarderError(.invalidArgument, "no leaf of \(tree)")
    }
}
