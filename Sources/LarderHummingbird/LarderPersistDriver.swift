import Hummingbird
import Larder
import Logging
import ServiceLifecycle

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Hummingbird's persist framework on disk: values that survive the process, in a `Store`.
///
///     let persist = LarderPersistDriver(store)
///     try await persist.create(key: "session", value: user, expires: .seconds(3_600))
///     let app = Application(router: router, services: [persist])
///
/// Values are JSON. They are pinned, so that a budget that the store shares with a cache does not displace them; give
/// what you write an expiry. As a service it removes what has expired every ``tidyFrequency``.
///
/// Safe to use from any task. Drivers in several processes may share a store: of several calls of
/// ``create(key:value:expires:)`` for one key, in whatever process, one succeeds.
public final class LarderPersistDriver: PersistDriver {
    /// How often expired values are removed while the service runs.
    public let tidyFrequency: Duration
    private let store: Store
    private let prefix: String
    private let clock: any StoreClock
    private let logger: Logger

    /// Makes a driver.
    ///
    /// - Parameters:
    ///   - store: an open store, which stays the caller's to close.
    ///   - prefix: what the keys start with in the store; drivers with other prefixes do not see each other's values.
    ///     Default: `persist/`.
    ///   - tidyFrequency: how often expired values are removed while the service runs; 1 second or more. Default: 10
    ///     minutes.
    ///   - clock: where the time comes from: the store's. Default: the machine's clock.
    ///   - logger: told of expired values that could not be removed. Default: a logger labelled `larder.persist`.
    public init(
        _ store: Store, prefix: String = "persist/", tidyFrequency: Duration = .seconds(600),
        clock: any StoreClock = SystemClock(), logger: Logger = Logger(label: "larder.persist")
    ) {
        self.store = store
        self.prefix = prefix
        self.tidyFrequency = max(tidyFrequency, .seconds(1))
        self.clock = clock
        self.logger = logger
    }

    /// Stores a value under a key that has none.
    ///
    /// - Parameters:
    ///   - key: 1 byte or more; with the prefix at most 65,536.
    ///   - value: encoded as JSON.
    ///   - expires: how long it stays; nil: until it is removed.
    /// - Throws: `PersistError.duplicate` if the key has a value that has not expired, `EncodingError`, `LarderError`.
    public func create<Object: Codable & Sendable>(key: String, value: Object, expires: Duration?) async throws {
        guard try await putUnlessPresent(try Self.encoded(value), key, lifetime(expires)) else {
            throw PersistError.duplicate
        }
    }

    /// Stores a value in place of what the key has.
    ///
    /// - Parameters:
    ///   - key: 1 byte or more; with the prefix at most 65,536.
    ///   - value: encoded as JSON.
    ///   - expires: how long it stays; nil: as long as the value that it replaces, or until it is removed.
    /// - Throws: `EncodingError`, `LarderError`.
    public func set<Object: Codable & Sendable>(key: String, value: Object, expires: Duration?) async throws {
        let bytes = try Self.encoded(value)
        guard expires == nil else {
            try await store.put(bytes, for: name(key), options(lifetime(expires)))
            return
        }
        // Another driver may change the value between the look at its expiry and the commit: then look again.
        while true {
            try Task.checkCancellation()
            let old = try await store.get(name(key))
            let kept: Lifetime = old?.attributes.expires.map { .until($0) } ?? .never
            if try await putUnlessPresent(bytes, key, kept, replacing: old) { return }
        }
    }

    /// The value of a key.
    ///
    /// - Parameters:
    ///   - key: what it was stored under.
    ///   - type: what it is decoded as.
    /// - Returns: nil if there is none, or it has expired.
    /// - Throws: `PersistError.invalidConversion` for a value that is not of this type, `LarderError`.
    public func get<Object: Codable & Sendable>(key: String, as type: Object.Type) async throws -> Object? {
        try await getWithTTL(key: key, as: type)?.object
    }

    /// The value of a key, and how long it stays.
    ///
    /// - Parameters:
    ///   - key: what it was stored under.
    ///   - type: what it is decoded as.
    /// - Returns: nil if there is none, or it has expired; no time for a value that stays until it is removed.
    /// - Throws: `PersistError.invalidConversion` for a value that is not of this type, `LarderError`.
    public func getWithTTL<Object: Codable & Sendable>(
        key: String, as type: Object.Type
    ) async throws -> (object: Object, ttl: Duration?)? {
        guard let entry = try await store.get(name(key)) else { return nil }
        let bytes = try await entry.body.bytes()
        let object: Object
        do {
            object = try JSONDecoder().decode(Object.self, from: Data(bytes))
        } catch is DecodingError {
            throw PersistError.invalidConversion
        }
        return (object, entry.attributes.expires.map { $0 - clock.now() })
    }

    /// Removes the value of a key, if it has one.
    ///
    /// - Parameter key: what it was stored under.
    /// - Throws: `LarderError`.
    public func remove(key: String) async throws {
        _ = try await store.remove(name(key))
    }

    /// Removes the values that have expired.
    ///
    /// - Throws: `LarderError`.
    public func tidy() async throws {
        let now = clock.now()
        var expired: [Key] = []
        for try await attributes in try store.entries(.prefix(Key(prefix))) {
            if let end = attributes.expires, end <= now { expired.append(attributes.key) }
        }
        for key in expired {
            guard let entry = try await store.get(key, includingExpired: true), let end = entry.attributes.expires,
                end <= now
            else { continue }
            // Only if it is still that one.
            try await store.remove(entry)
        }
    }

    /// Removes what has expired, every ``tidyFrequency``, until the application shuts down.
    public func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do { try await Task.sleep(for: self.tidyFrequency) } catch { return }
                do {
                    try await self.tidy()
                } catch {
                    // The values are still right: what has expired is not found.
                    self.logger.warning(
                        "expired values could not be removed", metadata: ["category": "persist", "error": "\(error)"])
                }
            }
        }
    }

    private func name(_ key: String) -> Key { Key(prefix + key) }

    private func lifetime(_ expires: Duration?) -> Lifetime { expires.map { .duration($0) } ?? .never }

    private func options(_ lifetime: Lifetime) -> PutOptions {
        // The metadata tells a value from an equal one that was stored later, for which another expiry may hold.
        PutOptions(lifetime: lifetime, metadata: Array("\(UInt64.random(in: .min ... .max))".utf8), isPinned: true)
    }

    /// Stores a value in one commit with the look at what is there.
    ///
    /// - Parameter old: what it may replace, if that is still the same.
    /// - Returns: false if there is another value.
    private func putUnlessPresent(
        _ bytes: [UInt8], _ key: String, _ lifetime: Lifetime, replacing old: Entry? = nil
    ) async throws -> Bool {
        var batch = WriteBatch()
        if let old { batch.remove(old) }
        batch.put(bytes, for: name(key), options(lifetime), unlessPresent: true)
        let results = try await store.write(batch)
        try results.throwIfFailed()
        if case .stored = results.last { return true }
        return false
    }

    private static func encoded(_ value: some Encodable) throws -> [UInt8] { [UInt8](try JSONEncoder().encode(value)) }
}
