import LMDB
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// An environment in a fresh directory, closed and removed afterwards.
func withEnvironment<R>(
    _ change: (inout Environment.Options) -> Void = { _ in }, _ body: (Environment, String) throws -> R
) throws -> R {
    var template = Array("\(temporaryRoot)/lmdb-test-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer {
        unlink(path + "/data.mdb")
        unlink(path + "/lock.mdb")
        rmdir(path)
    }
    var options = Environment.Options()
    options.mapSize = 1 << 30
    change(&options)
    let environment = try Environment(path: path, options: options)
    defer { environment.close() }
    return try body(environment, path)
}

private var temporaryRoot: String { access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp" }

extension Environment {
    func database(_ name: String, _ order: KeyOrder = .bytes) throws -> Database {
        try #require(try openDatabase(name, order: order, create: true))
    }
}

extension ReadTransaction {
    /// A copy of the value under `key`.
    func bytes(_ database: Database, _ key: String) throws -> [UInt8]? {
        try get(database, Array(key.utf8)).map { Array($0) }
    }

    func bytes(_ database: Database, _ key: UInt64) throws -> [UInt8]? {
        try get(database, key).map { Array($0) }
    }

    /// Every key and value, in order.
    func all(_ database: Database) throws -> [([UInt8], [UInt8])] {
        try withCursor(database) { cursor in
            var pairs: [([UInt8], [UInt8])] = []
            var pair = try cursor.first()
            while let (key, value) = pair {
                pairs.append((Array(key), Array(value)))
                pair = try cursor.next()
            }
            return pairs
        }
    }
}

/// `length` bytes that depend on `seed`.
func filler(_ length: Int, _ seed: Int) -> [UInt8] {
    var state = UInt64(truncatingIfNeeded: seed) &* 0x9E37_79B9_7F4A_7C15 | 1
    return (0..<length).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 33)
    }
}

/// Length and allocated bytes of a file.
func size(_ path: String) -> (length: Int, allocated: Int) {
    var status = stat()
    guard stat(path, &status) == 0 else { return (0, 0) }
    return (Int(status.st_size), Int(status.st_blocks) * 512)
}
