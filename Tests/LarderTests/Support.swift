import LMDB
import SystemPackage
import TestSupport
import Testing

@testable import Larder

extension Store {
    /// The body under `key`, whole; nil for a miss.
    func bytes(_ key: Key) throws -> [UInt8]? { try get(key)?.body.bytes() }

    /// The names of the files in `staging/` that hold bodies, those left out that are about to be unlinked.
    var stagedFiles: [String] {
        engine.writing?.reaper.drain()
        return TestFiles.names(in: path.appending("staging")).filter { !$0.hasSuffix(".lock") }
    }

    /// Where the body with `digest` lies, if it is a file.
    func blobPath(_ digest: Digest) -> FilePath { path.appending("blobs").appending(Layout.blob(digest)) }
}

/// The body of an entry, whole, read on this thread also where that is a task's; nil for none.
func bytes(of entry: Entry?) throws -> [UInt8]? { try entry?.body.bytes() }

/// Number and record of the blob with the highest number.
func lastBlob(_ mutation: Mutation, _ blobs: Database) throws -> (id: UInt64, raw: [UInt8]) {
    try mutation.reading.withCursor(blobs) { cursor in
        let last = try #require(try cursor.last())
        return (last.key.field(0), Array(last.value))
    }
}

extension Configuration {
    /// Puts stay pending until something flushes them.
    static var holding: Configuration { .testing { $0.commitDelay = .seconds(3600) } }
}

/// Runs `body` with the directory that a store leaves when the power fails after `use`, all that was written until then
/// on disk.
func withPowerLoss(
    _ configuration: Configuration, of use: (Store) throws -> Void, _ body: (_ crashed: FilePath) throws -> Void
) throws {
    try withDirectory { path in
        let (live, crashed) = (path.appending("live"), path.appending("crashed"))
        let store = try Store(at: live, configuration)
        try use(store)
        try store.flush()
        try TestFiles.copy(live, to: crashed)
        try store.close()
        try body(crashed)
    }
}

extension Layout {
    /// The name of a body file in a store that is not encrypted.
    static func blob(_ digest: Digest) -> String { blob(BlobName(digest)) }

    /// A name in `trash/` of such a store.
    static func trash(_ token: StagingToken, _ digest: Digest) -> String { trash(token, BlobName(digest)) }
}
