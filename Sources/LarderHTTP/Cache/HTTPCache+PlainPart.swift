import HTTPCaching
import Larder

/// Ranges of a response of which only parts are stored: a client that reads a video, or resumes a download.
extension PlainHitLookup {
    /// A copy of a record whose parts may have what is asked for; nil for every other. An encrypted part is not read on
    /// an event loop, and where there are packages, one may have a whole response.
    /// - Parameter length: of the entry's own body.
    func recordOfParts(
        _ metadata: UnsafeRawBufferPointer, _ length: Int64, _ question: PlainQuestion
    ) -> [UInt8]? {
        guard question.conditions.range != nil, !question.isHead, length == 0, !store.isEncrypted,
            !packages.arePresent.load(ordering: .relaxed),
            let layout = StoredRecord.Layout(metadata), layout.isPlainInParts, layout.ranges.isEmpty, layout.total >= 0,
            layout.parts.count <= Self.longestList
        else { return nil }
        return Array(metadata)
    }

    /// Bytes of a list of 16 parts with 64 ranges: clients can make one long, and an event loop has others to serve.
    private static let longestList = 16 * 10 + 64 * 16

    /// Runs `body` on the answer if one part in progress has all of it.
    /// - Parameter record: see ``recordOfParts(_:_:_:)``.
    func answer(
        _ question: PlainQuestion, partsIn record: [UInt8], of key: Key, selecting: [UInt8], _ body: (PlainHit) -> Void
    ) {
        record.withUnsafeBytes { metadata in
            guard let layout = StoredRecord.Layout(metadata) else { return }
            _ = answer(
                question, metadata, .none, length: layout.total, isInParts: true, selecting: selecting
            ) { hit in
                guard hit.status == 206, hit.range.count <= question.longestPart,
                    let parts = StoredPart.decode(Array(metadata[layout.parts])),
                    let part = parts.first(where: { $0.ranges.contains(hit.range) }),
                    case .hit(let stored) = try? store.lookUpPartial(part.key(key)),
                    FoundPart(part, in: stored)?.available.contains(hit.range) == true
                else { return }
                body(hit.sending(stored))
            }
        }
    }
}
