import Foundation
import GRDB
import SystemPackage

/// Blobs in a table, as in SQLite's article "35% Faster Than The Filesystem" (https://sqlite.org/fasterthanfs.html), by
/// key.
///
/// Write-ahead log with `synchronous=NORMAL`: no sync for a commit, which is the counterpart of a relaxed put.
/// Statements are prepared once. There is one queue, as in GRDB: several threads wait for each other.
final class SQLitePeer: Peer {
    private let database: DatabaseQueue

    init(_ path: FilePath) throws {
        var configuration = GRDB.Configuration()
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA mmap_size=1073741824")
        }
        database = try DatabaseQueue(path: path.appending("blobs.sqlite").string, configuration: configuration)
        try database.write {
            try $0.execute(sql: "CREATE TABLE IF NOT EXISTS blobs(key TEXT NOT NULL PRIMARY KEY, body BLOB NOT NULL)")
        }
    }

    func name(_ index: Int) -> Name {
        var name = Name(index)
        name.text = Name.text(index)
        return name
    }

    func put(_ body: [UInt8], _ name: Name) throws {
        try database.inDatabase { try Self.insert(body, name, $0) }
    }

    func putDurable(_ body: [UInt8], _ name: Name) throws {
        try database.inDatabase { database in
            try database.execute(sql: "PRAGMA synchronous=FULL")
            try Self.insert(body, name, database)
        }
    }

    private static func insert(_ body: [UInt8], _ name: Name, _ database: GRDB.Database) throws {
        let statement = try database.cachedStatement(sql: "INSERT OR REPLACE INTO blobs(key, body) VALUES(?, ?)")
        try body.withUnsafeBytes { bytes in
            // SAFETY: SQLite reads the bytes while the statement runs, inside this closure; nothing is freed by `Data`.
            let data = Data(
                bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes.baseAddress!), count: bytes.count,
                deallocator: .none)
            try statement.execute(arguments: [name.text, data])
        }
    }

    func get(_ name: Name, _ scratch: Scratch) throws -> Int? {
        try database.inDatabase { database in
            let statement = try database.cachedStatement(sql: "SELECT body FROM blobs WHERE key = ?")
            let rows = try Row.fetchCursor(statement, arguments: [name.text])
            guard let row = try rows.next() else { return nil }
            return try row.withUnsafeData(atIndex: 0) { data in data?.withUnsafeBytes { scratch.take($0) } }
        }
    }

    func remove(_ name: Name) throws {
        try database.inDatabase {
            try $0.cachedStatement(sql: "DELETE FROM blobs WHERE key = ?").execute(arguments: [name.text])
        }
    }

    func close() throws { try database.close() }
}
