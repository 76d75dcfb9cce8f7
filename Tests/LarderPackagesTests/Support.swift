import Foundation
import HTTPCaching
import HTTPTestSupport
import HTTPTypes
import Larder
import LarderHTTP
import LarderPackages
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// A store, its packages, a cache over it that reaches no origin, and a directory for archives.
final class Setting: Sendable {
    let store: Store
    let clock: TestClock
    let directory: FilePath
    let packages: PackageStore
    let cache: HTTPCache

    init(
        _ store: Store, _ clock: TestClock, _ directory: FilePath,
        reach: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.store = store
        self.clock = clock
        self.directory = directory
        packages = PackageStore(store, clock: clock, reach: reach)
        cache = Self.cache(store, clock)
    }

    private static func cache(_ store: Store, _ clock: TestClock) -> HTTPCache {
        var configuration = HTTPCacheConfiguration()
        configuration.clock = clock
        return HTTPCache(store: store, transport: ScriptedTransport(), configuration: configuration)
    }

    static func run(
        budget: Budget? = nil, reach: @escaping @Sendable (String) -> Void = { _ in },
        _ body: (Setting) async throws -> Void
    ) async throws {
        let clock = TestClock()
        try await withStore(configuration: .testing(budget: budget, clock: clock)) { store in
            try await withDirectory { directory in
                let setting = Setting(store, clock, directory, reach: reach)
                try await body(setting)
                try await #expect(setting.packages.check() == [])
            }
        }
    }

    /// Writes an archive.
    func archive(_ zip: RawZip, _ name: String = "test.zip") throws -> FilePath { try file(name, zip.bytes) }

    func file(_ name: String, _ bytes: [UInt8]) throws -> FilePath {
        let path = directory.appending(name)
        try FileManager.default.createDirectory(
            atPath: path.removingLastComponent().string, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: path.string))
        return path
    }

    /// Makes a package of files with these contents.
    @discardableResult
    func package(
        _ files: [String: String], _ name: String = "site.zip", version: String = "1",
        base: String = "http://a.example", maxAge: Int64? = 86_400, _ change: (inout PackageOptions) -> Void = { _ in },
        folder change2: (inout FolderOptions) -> Void = { _ in }
    ) throws -> FilePath {
        let folder = directory.appending("files-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        for (name, text) in files {
            let path = folder.appending(name).string
            try FileManager.default.createDirectory(
                atPath: FilePath(path).removingLastComponent().string, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        }
        var options = PackageOptions()
        options.name = "site"
        options.version = version
        options.created = clock.now()
        change(&options)
        var source = FolderOptions(folder.string)
        source.baseURL = base
        source.maxAge = maxAge
        change2(&source)
        let archive = directory.appending(name)
        try Package.create(archive, from: source, options)
        return archive
    }

    /// What the cache answers without a network: nil for a miss.
    func offline(_ url: String) async throws -> String? {
        guard let response = try await response(url) else { return nil }
        return String(decoding: try await response.body.bytes(), as: UTF8.self)
    }

    func response(_ url: String) async throws -> FetchResponse? {
        do {
            return try await cache.fetch(url, FetchOptions(isOffline: true))
        } catch  where error.code == .notCached {
            return nil
        }
    }

    /// Stores a response as if it had come over the network.
    func fetched(
        _ url: String, _ text: String, lastModified: String? = nil, cacheControl: String = "max-age=3600"
    ) async throws {
        let transport = ScriptedTransport { _ throws(TransportError) in
            var fields: HTTPFields = [.cacheControl: cacheControl]
            fields[.lastModified] = lastModified
            return .text(text, fields)
        }
        var configuration = HTTPCacheConfiguration()
        configuration.clock = clock
        let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
        _ = try await cache.fetch(url, FetchOptions(policy: .doNotRead)).body.bytes()
        await cache.drain()
    }

    /// Has a client ask the origin for a new response.
    func reloaded(_ url: String, _ text: String) async throws {
        let transport = ScriptedTransport { _ throws(TransportError) in .text(text, [.cacheControl: "max-age=3600"]) }
        var configuration = HTTPCacheConfiguration()
        configuration.clock = clock
        let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
        var request = try HTTPCache.request(for: url)
        request.headerFields[.cacheControl] = "no-cache"
        _ = try await cache.fetch(request).body.bytes()
        await cache.drain()
    }

    /// Has the origin confirm what is stored.
    func confirmed(_ url: String) async throws {
        let transport = ScriptedTransport { _ throws(TransportError) in .answer(304, [.cacheControl: "max-age=3600"]) }
        var configuration = HTTPCacheConfiguration()
        configuration.clock = clock
        let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
        let response = try await cache.fetch(url)
        _ = try await response.body.bytes()
        await cache.drain()
        #expect(transport.requests.count == 1 && response.originStatus == 304)
    }

    /// All keys of the store that are not of packages.
    func keys() throws -> [String] {
        try store.keys().map(\.text).filter { !$0.hasPrefix("larder:") }.sorted()
    }

    /// The table of packages.
    func table() throws -> [UInt8]? { try store.peek(PackageKeys.table(nil))?.body.bytes() }

    func keys(_ prefix: String) throws -> [Key] { try store.keys(.prefix(Key(prefix))) }

    /// The URLs of all members in the store, of every generation.
    func members() throws -> [String] {
        try store.keys(.prefix("larder:p ")).compactMap { PackageKeys.url(ofMember: $0) }.sorted()
    }

    /// The key of the member for a URL.
    func member(_ url: String) throws -> Key? {
        try store.keys(.prefix("larder:p ")).first { PackageKeys.url(ofMember: $0) == url }
    }

    /// True if there is the entry that members are found by.
    func hasOwner() throws -> Bool { try store.keys(.prefix("larder:p ")).contains { $0.bytes.count == 25 } }
}

/// The code that `body` fails with.
func packageCode<R>(_ body: () async throws -> R) async throws -> PackageError.Code? {
    do {
        _ = try await body()
        return nil
    } catch let error as PackageError {
        return error.code
    }
}

extension Sequence {
    func asyncCount(_ isWanted: (Element) async throws -> Bool) async throws -> Int {
        var count = 0
        for element in self where try await isWanted(element) { count += 1 }
        return count
    }
}
