/// Entries without a copy, for callers that need a moment. Buffers and spans point into the index's mapping, or to what
/// waits for the next commit: they must not leave the closure that gets them, which should be short, as it keeps pages
/// of the index from being reused.
extension Store {
    /// Runs `body` on the metadata and the bytes of the entry under `key`, in place. Returns false without running it
    /// if they are not both in the index's mapping: then `get` finds out if there is an entry. Counts as an access.
    package func visit(
        _ key: Key, includingExpired: Bool,
        _ body: (_ metadata: UnsafeRawBufferPointer, _ bytes: UnsafeRawBufferPointer) -> Void
    ) throws -> Bool {
        try requireOpen()
        return try engine.lookups.visitInline(key, visibility(includingExpired)) { view, bytes in
            guard let metadata = view.metadata else { return false }
            body(metadata, bytes)
            return true
        } ?? false
    }

    /// Runs `body` on the metadata of the entry under `key`, in place, and on what was made of its body, without a look
    /// at the body. Returns false without running it if there is no such entry, or nothing is held: then `get` finds
    /// out. Counts as an access.
    package func visitHeld<Value>(
        _ key: Key, _ kind: HeldKind<Value>,
        _ body: (_ metadata: UnsafeRawBufferPointer, _ content: HeldContent) -> Void
    ) throws -> Bool {
        try requireOpen()
        return try engine.lookups.visitHeld(key, visibility(false), kind.number) { view, digest, value in
            guard let metadata = view.metadata else { return false }
            let length = Int64(clamping: view.length)
            body(metadata, HeldContent(digest: digest, length: length, value: value, isOther: false))
            return true
        } ?? false
    }

    /// The result of a visit.
    package enum AtHand {
        /// One of the closures ran.
        case visited
        /// There is no entry that the caller may see; counted as a miss.
        case absent
        /// `lookUp` finds out, and counts.
        case elsewhere
    }

    /// Runs a closure on the metadata of the entry under `key`, and on its body where that is in the index's mapping or
    /// in memory for the next commit, or else on what was made of it and is held. Counts as an access or a miss, unless
    /// the entry is elsewhere: of those that wait for a commit, bodies that are compressed, in a file or not whole.
    /// - Parameters:
    ///   - other: a second way in which what is held may have been made. Default: none.
    ///   - inPlace: gets the length of the body as well, in bytes.
    package func visitAtHand<Value>(
        _ key: Key, includingExpired: Bool, _ kind: HeldKind<Value>, or other: HeldKind<Value>? = nil,
        inPlace: (_ metadata: UnsafeRawBufferPointer, InPlaceBody, _ length: Int64) -> Void,
        held: (_ metadata: UnsafeRawBufferPointer, _ content: HeldContent) -> Void
    ) throws -> AtHand {
        try requireOpen()
        var isDamaged = false
        let found = try engine.lookups.visitAtHand(key, visibility(includingExpired), kind.number, or: other?.number) {
            metadata, bytes, encoding, length in
            guard let metadata else { return isDamaged = true }
            inPlace(metadata, encoding == .gzip ? .member(bytes) : .bytes(bytes), Int64(clamping: length))
        } held: { view, digest, value, isOther in
            guard let metadata = view.metadata else { return isDamaged = true }
            let length = Int64(clamping: view.length)
            held(metadata, HeldContent(digest: digest, length: length, value: value, isOther: isOther))
        }
        return isDamaged ? .elsewhere : found
    }
}

/// The bytes of a body, without a copy.
package enum InPlaceBody {
    case bytes(UnsafeRawBufferPointer)
    /// The gzip member that is stored for it.
    case member(UnsafeRawBufferPointer)
}
