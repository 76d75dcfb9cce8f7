import HTTPCaching
import Larder

/// A fresh response to the commonest request, ready to be sent over HTTP/1.1. Valid only inside the call that receives
/// it.
package struct PlainHit {
    /// The place of the bytes of the content.
    package enum Content {
        /// In the store's mapping.
        case bytes(UnsafeRawBufferPointer)
        /// In memory: the value that was made of the content.
        case held(any Sendable, Digest)
        /// In a file, perhaps encrypted.
        case stored(Body, Digest)
    }

    /// The status code.
    package let status: Int
    /// The stored fields in the form for the connection: `name: value` and CR LF for each, without `Age`.
    package let fields: UnsafeRawBufferPointer
    /// True if ``fields`` has a `Content-Length`.
    package let hasContentLength: Bool
    /// The age for the `Age` field, in seconds.
    package let ageSeconds: Int64
    /// Seconds of freshness left.
    package let freshSeconds: Int64
    /// The content.
    package let content: Content
    /// The length of the content, in bytes.
    package let length: Int64
}

/// Finds plain hits.
struct PlainHitLookup: Sendable {
    private let context: CacheContext
    private let store: Store
    private let packages: StoredPackages

    init(_ context: CacheContext, _ responses: ResponseStore) {
        self.context = context
        store = responses.store
        packages = responses.packages
    }

    /// See ``HTTPCache/withPlainHit(_:_:_:)``.
    func visit(_ key: Key, _ kind: HeldKind<some Sendable>, _ body: (PlainHit) -> Void) {
        guard context.isPlain.load(ordering: .relaxed), !packages.isSuperseding.load(ordering: .relaxed) else { return }
        if visitEntry(key, kind, body) || !packages.arePresent.load(ordering: .relaxed) { return }
        // Where several packages have the URL, the rules choose.
        guard case .hit(let table) = try? store.peekAtOnce(packages.key),
            let members = try? packages.table(table).members(key.text), members.count == 1,
            let (row, member) = members.first
        else { return }
        if row.isWhole {
            guard case .hit = try? store.lookUp(PackageKeys.owner(row.generation)) else { return }
        }
        _ = visitEntry(member, kind, body)
    }

    /// False if there is no entry. An error of the store counts as one: the long way asks again, and tells of it.
    private func visitEntry(_ key: Key, _ kind: HeldKind<some Sendable>, _ body: (PlainHit) -> Void) -> Bool {
        let isInline = try? store.visit(key, includingExpired: true) { metadata, bytes in
            if let hit = plainHit(metadata, .bytes(bytes), length: Int64(bytes.count)) { body(hit) }
        }
        if isInline == true { return true }
        let isHeld = try? store.visitHeld(key, includingExpired: true, kind) { metadata, content in
            let held = PlainHit.Content.held(content.value, content.digest)
            if let hit = plainHit(metadata, held, length: content.length) { body(hit) }
        }
        if isHeld == true { return true }
        // What only waiting can tell, the long way does.
        guard let lookup = try? store.lookUp(key, includingExpired: true, decodesLater: true) else {
            return true
        }
        if case .miss = lookup { return false }
        guard case .hit(let entry) = lookup, entry.body.compressedForm == nil else {
            return true
        }
        entry.metadata.withUnsafeBytes { metadata in
            let content = PlainHit.Content.stored(entry.body, entry.digest)
            if let hit = plainHit(metadata, content, length: entry.body.length.bytes) { body(hit) }
        }
        return true
    }

    private func plainHit(_ metadata: UnsafeRawBufferPointer, _ content: PlainHit.Content, length: Int64) -> PlainHit? {
        let now = context.now
        guard let layout = StoredRecord.Layout(metadata), layout.isPlain,
            layout.status >= 200, ![204, 205, 304].contains(layout.status), layout.total == length,
            let policy = StoredPolicy(
                encoded: UnsafeRawBufferPointer(rebasing: metadata[40..<StoredRecord.fixedLength])),
            let age = context.rules.plainHitAge(policy: policy, now: now)
        else { return nil }
        return PlainHit(
            status: layout.status, fields: UnsafeRawBufferPointer(rebasing: metadata[layout.fields]),
            hasContentLength: layout.hasContentLength, ageSeconds: age,
            freshSeconds: (policy.lifetimeMilliseconds - policy.ageMilliseconds(at: now)) / 1_000, content: content,
            length: length)
    }
}

extension HTTPCache {
    /// True if ``withPlainHit(_:_:_:)`` can find anything: the default key is the URL, and no other part of the
    /// configuration takes part in the answer.
    package var hasPlainHits: Bool {
        configuration.keyPolicy.isDefault && configuration.authorization == nil
            && context.isPlain.load(ordering: .relaxed)
    }

    /// Runs `body` on the answer to a GET that has no content, precondition, range, `Cache-Control` and `Pragma`; does
    /// not run it if no answer can be sent unchanged: then call ``answer(_:hasContent:)``.
    ///
    /// - Parameters:
    ///   - key: the target URI in the form of ``CacheKey``: scheme and host in lower case, no default port.
    ///   - kind: what the caller may have made of content that is in a file.
    ///   - body: copies the bytes it needs, and must return quickly.
    package func withPlainHit(_ key: Key, _ kind: HeldKind<some Sendable>, _ body: (PlainHit) -> Void) {
        plainHits.visit(key, kind, body)
    }
}
