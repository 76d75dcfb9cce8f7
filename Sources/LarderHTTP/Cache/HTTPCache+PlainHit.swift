import HTTPCaching
import Larder

/// Finds plain hits.
struct PlainHitLookup: Sendable {
    private let context: CacheContext
    let store: Store
    let packages: StoredPackages
    private let variants: VariantMemory

    init(_ context: CacheContext, _ responses: ResponseStore) {
        self.context = context
        store = responses.store
        packages = responses.packages
        variants = VariantMemory(context.rules)
    }

    /// See ``HTTPCache/withPlainHit(_:_:_:values:_:)``.
    /// - Returns: true if nothing is stored under the key, nor in a package.
    func visit(
        _ key: Key, _ question: PlainQuestion, _ kinds: HeldContentKinds<some Sendable>,
        values: (String) -> [UInt8]?, _ body: (PlainHit) -> Void
    ) -> Bool {
        guard context.isPlain.load(ordering: .relaxed), !packages.isSuperseding.load(ordering: .relaxed) else {
            return false
        }
        var selected: VariantMemory.Selected?
        let isFound = visitResponse(key, question, kinds, body) { selected = variants.selected($0, values) }
        if let selected {
            _ = visitResponse(selected.key(key), question, kinds, selecting: selected.selecting, body)
            return false
        }
        if isFound { return false }
        guard packages.arePresent.load(ordering: .relaxed) else { return true }
        // Where several packages have the URL, the rules choose.
        guard case .hit(let table) = try? store.peekAtOnce(packages.key),
            let members = try? packages.table(table).members(key.text), members.count == 1,
            let (row, member) = members.first
        else { return false }
        if row.isWhole {
            guard case .hit = try? store.lookUp(PackageKeys.owner(row.generation)) else { return false }
        }
        _ = visitEntry(member, kinds) { metadata, content, length in
            _ = answer(question, metadata, content, length: length, body)
        }
        return false
    }

    /// Runs `body` on the answer that the response under a key gives, or `other` on the metadata of what is something
    /// else.
    /// - Returns: false if there is nothing.
    private func visitResponse(
        _ key: Key, _ question: PlainQuestion, _ kinds: HeldContentKinds<some Sendable>, selecting: [UInt8] = [],
        _ body: (PlainHit) -> Void, other: (UnsafeRawBufferPointer) -> Void = { _ in }
    ) -> Bool {
        var record: [UInt8]?
        let isFound = visitEntry(key, kinds) { metadata, content, length in
            if answer(question, metadata, content, length: length, selecting: selecting, body) { return }
            record = recordOfParts(metadata, length, question)
            if record == nil { other(metadata) }
        }
        // The transaction has ended: none may begin inside another.
        if let record { answer(question, partsIn: record, of: key, selecting: selecting, body) }
        return isFound
    }

    /// False if there is no entry. An error of the store counts as one: the long way asks again, and tells of it.
    private func visitEntry(
        _ key: Key, _ kinds: HeldContentKinds<some Sendable>,
        _ body: (_ metadata: UnsafeRawBufferPointer, PlainHit.Content, _ length: Int64) -> Void
    ) -> Bool {
        let found = try? store.visitAtHand(key, includingExpired: true, kinds.whole, or: kinds.member) {
            metadata, found, length in
            switch found {
            case .bytes(let bytes): body(metadata, .bytes(bytes), length)
            case .member(let bytes): body(metadata, .member(.bytes(bytes)), length)
            }
        } held: { metadata, held in
            let content: PlainHit.Content =
                held.isOther ? .member(.held(held.value, held.digest)) : .held(held.value, held.digest)
            body(metadata, content, held.length)
        }
        if found == .visited { return true }
        if found == .absent { return false }
        // What only waiting can tell, the long way does.
        guard let lookup = try? store.lookUp(key, includingExpired: true, decodesLater: true) else { return true }
        switch lookup {
        case .miss: return false
        case .due: return true
        case .hit(let entry):
            entry.metadata.withUnsafeBytes {
                body($0, .stored(entry.body, entry.digest), entry.body.length.bytes)
            }
            return true
        }
    }

    /// False, without running `body`, where the long way has to be taken.
    /// - Parameters:
    ///   - isInParts: whether the content is, of which the answer is to be a range.
    ///   - selecting: the secondary key that the response has to have, encoded.
    func answer(
        _ question: PlainQuestion, _ metadata: UnsafeRawBufferPointer, _ content: PlainHit.Content, length: Int64,
        isInParts: Bool = false, selecting: [UInt8] = [], _ body: (PlainHit) -> Void
    ) -> Bool {
        let now = context.now
        guard let layout = StoredRecord.Layout(metadata), isInParts ? layout.isPlainInParts : layout.isPlain,
            layout.selecting.count == selecting.count,
            selecting.isEmpty
                || UnsafeRawBufferPointer(rebasing: metadata[layout.selecting]).isEqual(to: selecting),
            layout.status >= 200, ![204, 205, 304].contains(layout.status), layout.total == length,
            let policy = StoredPolicy(
                encoded: UnsafeRawBufferPointer(rebasing: metadata[40..<StoredRecord.fixedLength])),
            let age = context.rules.plainHitAge(policy: policy, now: now)
        else { return false }
        let fields = UnsafeRawBufferPointer(rebasing: metadata[layout.fields])
        let fresh = (policy.lifetimeMilliseconds - policy.ageMilliseconds(at: now)) / 1_000
        func hit(
            _ status: Int, _ fields: UnsafeRawBufferPointer, _ missingLength: Int64?, _ content: PlainHit.Content,
            _ range: Range<Int64>
        ) -> PlainHit {
            PlainHit(
                status: status, fields: fields, missingLength: missingLength, ageSeconds: age, freshSeconds: fresh,
                content: content, range: range)
        }
        let missingLength = layout.hasContentLength ? nil : length
        if question.isUnconditional {
            body(hit(layout.status, fields, missingLength, content, 0..<length))
            return true
        }
        // Who sends the compressed form has to say so of it in such answers, too: the long way does.
        switch content {
        case .member: return false
        case .stored(let body, _) where body.compressedForm != nil: return false
        default: break
        }
        let tag = FieldLines.find("etag", in: fields)
        let answer = context.rules.hit(
            question.conditions, isHead: question.isHead, policy: policy, status: layout.status, length: length,
            tag: tag.count == 1 ? tag.0 : nil, now: now)
        switch answer {
        case nil: return false
        case .whole where question.isHead: body(hit(layout.status, fields, missingLength, .none, 0..<0))
        case .whole: body(hit(layout.status, fields, missingLength, content, 0..<length))
        case .notModified:
            Self.withFields(of: fields, in: .notModified, hasTag: tag.count > 0) {
                body(hit(304, $0, nil, .none, 0..<0))
            }
        case .range(let range):
            let line = "Content-Range: \(CacheRules.contentRange(range, of: length))\r\n"
            Self.withFields(of: fields, in: .range(range), hasTag: tag.count > 0, adding: line) {
                body(hit(206, $0, Int64(range.count), content, range))
            }
        }
        return true
    }

    /// Runs `body` on the fields of a stored response that are in an answer, too, and a line behind them.
    private static func withFields(
        of stored: UnsafeRawBufferPointer, in answer: CacheRules.HitAnswer, hasTag: Bool, adding line: String = "",
        _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        var line = line
        withUnsafeTemporaryAllocation(byteCount: stored.count + line.utf8.count, alignment: 1) { buffer in
            var count = 0
            func copy(_ bytes: UnsafeRawBufferPointer) {
                UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: bytes)
                count += bytes.count
            }
            // Lines that stay are copied together.
            var start = 0
            var end = 0
            for line in FieldLines(stored) {
                if CacheRules.leavesOut(line.name, of: answer, hasTag: hasTag) {
                    copy(UnsafeRawBufferPointer(rebasing: stored[start..<end]))
                    start = end + line.whole.count
                }
                end += line.whole.count
            }
            copy(UnsafeRawBufferPointer(rebasing: stored[start..<end]))
            line.withUTF8 { copy(UnsafeRawBufferPointer($0)) }
            body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }
}

extension HTTPCache {
    /// True if ``withPlainHit(_:_:_:values:_:)`` can find anything: the default key is the URL, and no other part of
    /// the configuration takes part in the answer.
    package var hasPlainHits: Bool {
        configuration.keyPolicy.isDefault && configuration.authorization == nil
            && context.isPlain.load(ordering: .relaxed)
    }

    /// Runs `body` on the answer to a request with GET or HEAD, if one stored response gives it; does not run it if it
    /// takes more to find that out: then call ``answer(_:hasContent:)``.
    ///
    /// - Parameters:
    ///   - key: the target URI in the form of ``CacheKey``: scheme and host in lower case, no default port.
    ///   - question: what else the answer depends on.
    ///   - kinds: what the caller may have made of content that is in a file.
    ///   - values: gives the values of all lines with a name, which is in lower case, joined by commas; nil if there is
    ///     none.
    ///   - body: copies the bytes it needs, and must return quickly.
    /// - Returns: true if nothing is stored for the URL.
    @discardableResult
    package func withPlainHit(
        _ key: Key, _ question: PlainQuestion, _ kinds: HeldContentKinds<some Sendable>,
        values: (String) -> [UInt8]?, _ body: (PlainHit) -> Void
    ) -> Bool {
        plainHits.visit(key, question, kinds, values: values, body)
    }
}

/// What a caller may hold of content that is in a file.
package struct HeldContentKinds<Value: Sendable>: Sendable {
    /// Made of all of it.
    package let whole = HeldKind<Value>()
    /// Made of the gzip member that is stored for it.
    package let member = HeldKind<Value>()

    package init() {}
}
