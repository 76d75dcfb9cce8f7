import Locks

/// What is made of bodies and held in memory beside them: a type, and one way to make it.
package struct HeldKind<Value: Sendable>: Sendable {
    let number: Int

    init(number: Int) { self.number = number }

    /// A kind that no other is equal to.
    package init() { number = HeldKinds.next() }
}

/// What a kind is known by in a tier.
struct HeldName: Hashable, @unchecked Sendable {
    // SAFETY: it is made of a value that can be sent; `AnyHashable` only does not say so.
    private let value: AnyHashable

    /// - Parameter value: can be sent.
    init(_ value: any Hashable) { self.value = AnyHashable(value) }
}

/// What was made of the body of an entry.
// Not generic: a lookup that is would ask the runtime for its types with every hit.
package struct HeldContent: Sendable {
    /// Of the body.
    package let digest: Digest
    /// Of the body, in bytes.
    package let length: Int64
    /// Of the type of the kind that was asked for.
    package let value: any Sendable
    /// Whether it was made in the second of the ways that were asked for.
    package let isOther: Bool
}

/// The numbers of kinds: from 1, each once in a process.
enum HeldKinds: ProcessGlobal {
    private static let last = Atomic<Int>(0)

    static func prepare() { _ = next() }
    static func rehearse() {}
    // Those of the parent are not used again.
    static func beginAgain() {}

    static func next() -> Int { last.add(1, ordering: .relaxed).newValue }
}

extension Store {
    /// The kind of values that `maker` makes: that of all equal makers on all handles of this store; if it is not
    /// `Hashable`, one of its own.
    package func heldKind<Value>(of maker: some Sendable) -> HeldKind<Value> {
        guard let name = maker as? any Hashable else { return HeldKind() }
        return HeldKind(number: engine.tier.kind(named: HeldName(name)))
    }

    /// What was made of the body with a digest, if it is held. For a look that follows a visit, which has counted.
    package func held<Value>(_ kind: HeldKind<Value>, of digest: Digest) -> Value? {
        // Two steps: a cast of nil to a type that is optional itself succeeds.
        guard let value = engine.bodies.held(kind.number, digest, isCounted: false) else { return nil }
        return value as? Value
    }

    /// Logs why nothing can be made of the body of an entry.
    package func report(undecodable key: Key, as type: String, _ error: any Error) {
        logger(.calls).notice(
            "the body is not a value of the type", metadata: ["error": "\(error)", "key": "\(key)", "type": "\(type)"])
    }

    /// Holds what was made of a body in memory, if there is room for it, and bodies are not verified at each read.
    /// - Parameters:
    ///   - digest: of the body, which was compared with it.
    ///   - cost: bytes of memory that it takes, about.
    package func hold<Value>(_ value: Value, _ kind: HeldKind<Value>, of digest: Digest, cost: Int) {
        engine.tier.hold(value, kind, of: digest, cost: cost)
    }
}

extension Body {
    /// True if the body of a file stays in memory once it was read whole.
    package var staysInMemory: Bool {
        fileInMemory?.holds(length) ?? false
    }

    /// Where the body of a file may stay.
    private var fileInMemory: BodyPlace? {
        switch storage {
        case .file(_, let place): place
        case .sealed(let body): body.place
        case .memory, .compressed: nil
        }
    }

    /// Makes a value of the bytes of a body in a file, and holds it in memory, for bodies that are asked for again:
    /// from the second call on within a while, on a thread that may wait for the disk. Does nothing for others.
    /// - Parameter make: gets all bytes. The value takes as much memory as they do.
    package func holdLater<Value>(_ kind: HeldKind<Value>, _ make: @escaping @Sendable (RawSpan) -> Value) {
        guard let place = fileInMemory, let tier = place.tier, case .digest(let digest) = place.name,
            tier.beginMaking(kind, of: digest, cost: Int(length.bytes))
        else { return }
        let cost = Int(length.bytes)
        whenSound(in: tier, kind, digest) { tier.hold(make($0), kind, of: digest, cost: cost) }
    }

    /// The same of the gzip member that is stored for a body. Does nothing for a body that has none.
    package func holdMemberLater<Value>(_ kind: HeldKind<Value>, _ make: @escaping @Sendable (RawSpan) -> Value) {
        guard case .compressed(let compressed) = storage, let place = compressed.place, let tier = place.tier,
            case .digest(let digest) = place.name
        else { return }
        let member = compressed.member
        let cost = Int(member.length.bytes)
        guard tier.beginMaking(kind, of: digest, cost: cost) else { return }
        whenSound(in: tier, kind, digest) { _ in
            try member.withBytes { tier.hold(make($0), kind, of: digest, cost: cost) }
        }
    }

    /// Lets a value be held if the bytes of the body are those of its digest.
    private func whenSound<Value>(
        in tier: MemoryTier, _ kind: HeldKind<Value>, _ digest: Digest,
        _ hold: @escaping @Sendable (RawSpan) throws -> Void
    ) {
        let body = self
        IOPool.shared.submit {
            // What cannot be read is not held.
            try? body.withBytes { span in
                guard span.withUnsafeBytes({ Digest.of($0) }) == digest else { return }
                try hold(span)
            }
            tier.endMaking(kind, of: digest)
        }
    }
}
