import Foundation
import Larder
import LarderValues
import SystemPackage

/// The stores that are compared.
struct TierStores {
    private let plain: Store
    private let kept: Store
    private let compressed: Store
    private let both: Store
    private let encrypted: Store
    private let encryptedKept: Store
    /// With bodies of 4 KiB and more in files.
    private let encryptedFiles: Store

    init(_ directory: WorkDirectory) throws {
        func open(_ name: String, _ change: (inout Configuration) -> Void) throws -> Store {
            var configuration = Configuration()
            configuration.memoryLimit = .mebibytes(256)
            change(&configuration)
            return try Store(at: directory.make(name), configuration)
        }
        plain = try open("plain") { _ in }
        kept = try open("kept") { $0.keepsBodiesInMemory = true }
        compressed = try open("compressed") { $0.compression = .trial }
        both = try open("both") {
            $0.compression = .trial
            $0.keepsBodiesInMemory = true
        }
        let key = EncryptionKey.random()
        encrypted = try open("encrypted") { $0.encryption = key }
        encryptedKept = try open("encrypted-kept") { ($0.encryption, $0.keepsBodiesInMemory) = (key, true) }
        encryptedFiles = try open("encrypted-files") {
            ($0.encryption, $0.keepsBodiesInMemory, $0.inlineThreshold) = (key, true, .kibibytes(2))
        }
        for store in [plain, kept, compressed, both, encrypted, encryptedKept, encryptedFiles] {
            for length in Self.lengths {
                for number in 0..<Self.count { try store.put(Self.text(length, number), for: Self.key(length, number)) }
            }
            for number in 0..<Self.count {
                try store.put(JSONEncoder().encode(Feed(number)), for: Self.key(0, number))
            }
            try store.flush()
        }
    }

    private static let lengths = [100, 4 << 10, 64 << 10, 1 << 20]
    private static let count = 32

    func pairs() throws -> [(title: String, pairs: [TierPair])] {
        [
            ("Hits of bodies: `get` and `bytes`", Self.lengths.map { length in hits(length) }),
            ("Hits of bodies, encrypted", Self.lengths.map { length in encryptedHits(length) }),
            ("Decoded values", [values()]),
            ("Puts of text", Self.lengths.map { length in puts(length) }),
            ("Listings by prefix", [listings()]),
        ]
    }

    private static func key(_ length: Int, _ number: Int) -> Key { Key("http://tiers.test/\(length)/\(number)") }

    /// Text that gzip makes a fourth of, about.
    private static func text(_ length: Int, _ number: Int) -> [UInt8] {
        var generator = Generator(seed: UInt64(number) &+ 1)
        var text: [UInt8] = []
        text.reserveCapacity(length + 16)
        while text.count < length { text += "word\(generator.next() % 4_096) ".utf8 }
        return Array(text.prefix(length))
    }

    private static func name(_ length: Int) -> String { length < 1024 ? "\(length) B" : "\(length >> 10) KiB" }

    private func reading(_ length: Int, _ store: Store) -> () throws -> Void {
        return {
            for number in 0..<Self.count {
                guard let bytes = try store.get(Self.key(length, number))?.body.bytes(), bytes.count == length else {
                    throw Missing()
                }
            }
        }
    }

    private func hits(_ length: Int) -> TierPair {
        TierPair(
            what: Self.name(length), count: Self.count,
            ways: [
                ("plain", reading(length, plain)), ("memory tier", reading(length, kept)),
                ("compressed", reading(length, compressed)), ("compressed, memory tier", reading(length, both)),
            ])
    }

    private func encryptedHits(_ length: Int) -> TierPair {
        TierPair(
            what: Self.name(length), count: Self.count,
            ways: [
                ("plain", reading(length, plain)), ("encrypted", reading(length, encrypted)),
                ("encrypted, memory tier", reading(length, encryptedKept)),
                ("in files, memory tier", reading(length, encryptedFiles)),
            ])
    }

    /// Of one length among all that are there.
    private func listings() -> TierPair {
        func list(_ store: Store) -> () throws -> Void {
            return {
                guard try store.keys(.prefix("http://tiers.test/100/")).count >= Self.count else { throw Missing() }
            }
        }
        return TierPair(
            what: "32 of 160 entries and more", count: 1,
            ways: [("plain", list(plain)), ("encrypted", list(encrypted))])
    }

    private func values() -> TierPair {
        let feeds = plain.values(of: Feed.self)
        let store = plain
        return TierPair(
            what: "JSON of \(try! JSONEncoder().encode(Feed(0)).count) B", count: Self.count,
            ways: [
                (
                    "`get` and `JSONDecoder`",
                    {
                        for number in 0..<Self.count {
                            guard let bytes = try store.get(Self.key(0, number))?.body.bytes() else { throw Missing() }
                            _ = try JSONDecoder().decode(Feed.self, from: Data(bytes))
                        }
                    }
                ),
                (
                    "`Values.get`",
                    {
                        for number in 0..<Self.count {
                            guard try feeds.get(Self.key(0, number)) != nil else { throw Missing() }
                        }
                    }
                ),
            ])
    }

    /// Each put has a body of its own.
    private func puts(_ length: Int) -> TierPair {
        func write(_ store: Store) -> () throws -> Void {
            var body = Self.text(length, 7)
            var number = 0
            return {
                number += 1
                withUnsafeBytes(of: number) { body.replaceSubrange(0..<8, with: $0) }
                try store.put(body, for: Self.key(length, Self.count + number % 64))
            }
        }
        return TierPair(
            what: Self.name(length), count: 1,
            ways: [("plain", write(plain)), ("compressed", write(compressed)), ("encrypted", write(encrypted))])
    }

    private struct Missing: Error {}
}

/// What a feed reader parses.
private struct Feed: Codable, Sendable {
    struct Item: Codable, Sendable {
        var title: String
        var link: URL
        var tags: [String]
        var published: Double
    }

    var items: [Item]

    init(_ number: Int) {
        items = (0..<30).map { item in
            Item(
                title: "Item \(item) of feed \(number)", link: URL(string: "https://feed.test/\(number)/\(item)")!,
                tags: ["news", "swift", "cache"], published: Double(1_800_000_000 + item))
        }
    }
}
