import Larder
import SystemPackage
import Testing

extension Configuration {
    /// The configuration of tests: bodies over 4 KiB are files, and the log reports only critical messages. Expired
    /// entries stay: otherwise they would be removed whenever the store's thread gets to them.
    public static func testing(
        budget: Budget? = nil, clock: (any StoreClock)? = nil, _ change: (inout Configuration) -> Void = { _ in }
    ) -> Configuration {
        var configuration = Configuration()
        configuration.budget = budget
        configuration.inlineThreshold = .kibibytes(4)
        // What tests look at is mostly blobs. `EmbeddedTests` and the model have small bodies in records.
        configuration.embeddingThreshold = .zero
        configuration.logger.logLevel = .critical
        configuration.expiredRetention = .seconds(3_000_000_000)
        configuration.heedsMemoryPressure = false
        if isEncrypting { configuration.encryption = try? testKey }
        if let clock { configuration.clock = clock }
        change(&configuration)
        return configuration
    }

    /// Whether stores of tests are encrypted that do not say so themselves: with `LARDER_TEST_ENCRYPTION` in the
    /// environment.
    public static let isEncrypting = getenv("LARDER_TEST_ENCRYPTION") != nil

    /// The key of encrypted stores of tests.
    public static var testKey: EncryptionKey { get throws { try EncryptionKey(bytes: 0..<32) } }
}

/// Runs `body` with a new store; afterwards verifies the store, closes it and removes its directory.
///
/// The directory is kept, and its path printed, if `body` throws or the store turns out to be unsound.
@discardableResult
public func withStore<R>(
    configuration: Configuration = .testing(), sourceLocation: SourceLocation = #_sourceLocation,
    _ body: (Store) throws -> R
) throws -> R {
    try withDirectory { path in
        let store = try Store(at: path, configuration)
        let result = try body(store)
        try finish(store, sourceLocation: sourceLocation)
        return result
    }
}

/// As the synchronous `withStore`.
@discardableResult
public func withStore<R>(
    configuration: Configuration = .testing(), sourceLocation: SourceLocation = #_sourceLocation,
    _ body: (Store) async throws -> R
) async throws -> R {
    try await withDirectory { path in
        let store = try Store(at: path, configuration)
        let result = try await body(store)
        try finish(store, sourceLocation: sourceLocation)
        return result
    }
}

/// Runs `body` with a fresh directory, removed afterwards unless `body` throws.
@discardableResult
public func withDirectory<R>(_ body: (FilePath) throws -> R) throws -> R {
    let path = try TestFiles.makeDirectory()
    do {
        let result = try body(path)
        TestFiles.remove(path)
        return result
    } catch {
        print("kept for inspection: \(path)")
        throw error
    }
}

/// As the synchronous `withDirectory`.
@discardableResult
public func withDirectory<R>(_ body: (FilePath) async throws -> R) async throws -> R {
    let path = try TestFiles.makeDirectory()
    do {
        let result = try await body(path)
        TestFiles.remove(path)
        return result
    } catch {
        print("kept for inspection: \(path)")
        throw error
    }
}

/// A store that violated what every store has to hold.
public struct UnsoundStore: Error {
    /// Empty: what was wrong has been recorded.
    public init() {}
}

/// Verifies the invariants and the exact size of an open store. Records an issue for each thing that is wrong and
/// throws.
public func verify(_ store: Store, sourceLocation: SourceLocation = #_sourceLocation) throws {
    try store.flush()
    let report = try store.check()
    for violation in report.violations { Issue.record("\(violation)", sourceLocation: sourceLocation) }
    var reported: Int64 = 0
    var counted: Int64 = 0
    // Background work may continue between the two measurements; then both are repeated.
    for _ in 0..<10 {
        reported = try store.statistics().allocatedBytes.bytes
        counted = recount(store.path)
        if try reported == counted || store.statistics().allocatedBytes.bytes == reported { break }
    }
    #expect(reported == counted, "allocatedBytes against lstat", sourceLocation: sourceLocation)
    if !report.isClean || reported != counted { throw UnsoundStore() }
}

/// Verifies a store, whatever its state, and closes it.
public func finish(_ store: Store, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let outcome = Result { try verify(store, sourceLocation: sourceLocation) }
    try store.close()
    try outcome.get()
}

/// The code of the `LarderError` that `body` throws; nil if it throws nothing. Other errors are passed on.
public func code<R>(_ body: () throws -> R) rethrows -> LarderError.Code? {
    do {
        _ = try body()
        return nil
    } catch let error as LarderError {
        return error.code
    }
}

/// As the synchronous `code`.
public func code<R>(_ body: () async throws -> R) async rethrows -> LarderError.Code? {
    do {
        _ = try await body()
        return nil
    } catch let error as LarderError {
        return error.code
    }
}
