import ArgumentParser
import SystemPackage

/// The peers that run in this process.
enum PeerKind: String, CaseIterable, Sendable, ExpressibleByArgument {
    case larder
    case larderSpan = "larder-span"
    case files
    case sqlite
    case urlcache
    case directory
    case lmdb
    case segments
    case segmentsOrdered = "segments-ordered"

    /// One line on what it does.
    var summary: String {
        switch self {
        case .larder: "Larder: put, get(key) and body.bytes(), which allocates memory"
        case .larderSpan: "Larder: as above, read into a reused buffer by read(_:into:)"
        case .files: "plain files: create + write + rename, open + pread + close into a reused buffer; 256 directories"
        case .sqlite:
            "SQLite blobs through GRDB: WAL, synchronous=NORMAL (FULL for durable puts), one put in a transaction"
        case .urlcache: "Foundation's URLCache, no memory tier"
        case .directory: "a directory cache modelled on Nuke's DataCache: a file for each key, staged writes, LRU sweep"
        case .lmdb: "raw LMDB, 256 puts in a commit, no hash, no order, no budget: the upper limit"
        case .segments: "a prototype past LMDB: segments that are used again, found by mapped hash tables"
        case .segmentsOrdered: "as above, with the order of the keys in a tree of LMDB that is written behind"
        }
    }

    /// Opens it in `path`, an empty directory or one that it used before.
    func open(_ path: FilePath, _ options: PeerOptions = PeerOptions()) throws -> any Peer {
        switch self {
        case .larder: try LarderPeer(path, options, reading: .own)
        case .larderSpan: try LarderPeer(path, options, reading: .copied)
        case .files: try PlainFilesPeer(path)
        case .sqlite: try SQLitePeer(path)
        case .urlcache: try URLCachePeer(path, options)
        case .directory: try DirectoryCachePeer(path, options)
        case .lmdb: try RawLMDBPeer(path)
        case .segments: try SegmentsPeer(path, options, isOrdered: false)
        case .segmentsOrdered: try SegmentsPeer(path, options, isOrdered: true)
        }
    }
}
