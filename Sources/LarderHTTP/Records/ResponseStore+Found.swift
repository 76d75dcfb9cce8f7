import HTTPCaching
import HTTPTypes
import Larder

/// Finding stored responses.
extension ResponseStore {
    /// A stored response and its entries.
    struct Found: Sendable {
        let key: Key
        let entry: Entry
        /// What the body of the entry itself holds.
        let own: BodyExtent
        /// The parts that hold more of it.
        fileprivate(set) var parts: [(part: StoredPart, entry: Entry)] = []
        /// The response with the bytes of all entries.
        var response: StoredResponse

        /// Where the bytes of a range are; empty if some are missing.
        func segments(_ range: Range<Int64>) -> [ResponseBody.Segment] {
            var segments: [ResponseBody.Segment] = []
            var position = range.lowerBound
            while position < range.upperBound {
                guard let (body, offset, end) = run(from: position, to: range.upperBound) else { return [] }
                segments.append(.stored(body, offset..<(offset + end - position)))
                position = end
            }
            return segments
        }

        /// The longest run of bytes from a position on, in one entry.
        private func run(from position: Int64, to limit: Int64) -> (Body, offset: Int64, end: Int64)? {
            var best: (Body, offset: Int64, end: Int64)?
            func consider(_ ranges: ByteRanges, _ body: Body) {
                guard let range = ranges.ranges.first(where: { $0.contains(position) }),
                    let offset = ranges.storageOffset(of: position), best.map({ $0.end < range.upperBound }) ?? true
                else { return }
                best = (body, offset, range.upperBound)
            }
            consider(own.available, entry.body)
            for (part, entry) in parts { consider(part.ranges, entry.body) }
            return best.map { ($0.0, $0.offset, min($0.end, limit)) }
        }

        /// Counts the bytes of the parts in.
        fileprivate mutating func addUp() {
            guard !parts.isEmpty else { return }
            let available = own.available.union(parts.map(\.part.ranges))
            let total = own.total
            if let total, available.contains(0..<total) {
                response.body = .complete(length: total)
                response.head.headerFields[.contentLength] = String(total)
            } else {
                response.body = .partial(available, total: total)
            }
        }
    }

    /// What is stored under a primary key and may be chosen for a request with these fields. Damaged or foreign entries
    /// count as absent.
    func find(_ primary: String, for request: HTTPFields) async throws -> [Found] {
        var search = Search(primary, request, rules)
        while let key = search.next { search.take(try await store.get(key, includingExpired: true), of: key) }
        return search.result
    }

    /// As above, waiting on the calling thread.
    func findWaiting(_ primary: String, for request: HTTPFields) throws -> [Found] {
        var search = Search(primary, request, rules)
        while let key = search.next { search.take(try store.get(key, includingExpired: true), of: key) }
        return search.result
    }

    /// As above; nil where the store would have to wait for a disk, and where it takes long: an event loop has others
    /// to serve.
    func findAtOnce(_ primary: String, for request: HTTPFields) throws -> [Found]? {
        var search = Search(primary, request, rules)
        while let key = search.next {
            if search.isLong { return nil }
            switch try store.lookUp(key, includingExpired: true) {
            case .hit(let entry): search.take(entry, of: key)
            case .miss: search.take(nil, of: key)
            case .due: return nil
            }
        }
        return search.result
    }

    /// What is stored under the key of a single response, with its parts. May wait.
    func findOne(_ key: Key) throws -> Found? {
        try findOne(key) { try store.get($0, includingExpired: true) }
    }

    /// As above, with another way to look up an entry.
    func findOne(_ key: Key, lookUp: (Key) throws -> Entry?) rethrows -> Found? {
        var search = Search(key)
        while let key = search.next { search.take(try lookUp(key), of: key) }
        return search.result.first
    }

    /// The lookups that a search takes: the primary key, the variants that it leads to, and the parts of responses.
    private struct Search {
        private enum Step {
            case primary
            case variant(SelectingFields)
            case part(StoredPart, of: Int)
        }

        private let request: HTTPFields
        private let rules: CacheRules?
        private let primary: String
        private var steps: [(key: Key, step: Step)]
        private var position = 0
        private var found: [Found] = []
        private var rangeCount = 0
        private var hasLostPart = false
        private var isSecond = false

        init(_ primary: String, _ request: HTTPFields, _ rules: CacheRules) {
            self.primary = primary
            self.request = request
            self.rules = rules
            steps = [(Key(primary), .primary)]
        }

        /// A single response, whatever selects it.
        init(_ key: Key) {
            primary = ""
            request = [:]
            rules = nil
            steps = [(key, .primary)]
        }

        /// Whether clients have made it long, by asking for many ranges of one response, or many variants.
        var isLong: Bool { steps.count > 16 || rangeCount > 64 }

        /// What to look up next; nil when everything is found.
        ///
        /// A part that is gone was displaced, or combined with others since its response was looked up: then everything
        /// is looked up again, once, as the response lists other parts now.
        var next: Key? {
            mutating get {
                if position == steps.count, hasLostPart, !isSecond {
                    isSecond = true
                    (steps, position, found, rangeCount) = ([steps[0]], 0, [], 0)
                }
                return position < steps.count ? steps[position].key : nil
            }
        }

        /// What was found, without responses that have lost all their bytes.
        var result: [Found] {
            var result: [Found] = []
            for var found in found {
                found.addUp()
                if found.response.body.isComplete || !found.response.body.available.ranges.isEmpty {
                    result.append(found)
                }
            }
            return result
        }

        mutating func take(_ entry: Entry?, of key: Key) {
            let step = steps[position].step
            position += 1
            guard let entry else {
                if case .part = step { hasLostPart = true }
                return
            }
            let metadata = entry.metadata
            switch step {
            case .primary:
                if !take(entry, metadata, key, nil), let rules, let index = VariantIndex(metadata) {
                    let primary = primary
                    steps += rules.variantsToLookUp(index.variants, for: request).map {
                        (VariantIndex.key(primary, $0), .variant($0))
                    }
                }
            case .variant(let selecting): _ = take(entry, metadata, key, selecting)
            case .part(let part, let index):
                guard metadata == StoredPart.metadata, entry.body.length.bytes == part.ranges.count else { return }
                found[index].parts.append((part, entry))
            }
        }

        private mutating func take(
            _ entry: Entry, _ metadata: [UInt8], _ key: Key, _ selecting: SelectingFields?
        ) -> Bool {
            // The body has to be as long as the record says.
            guard let record = StoredRecord(metadata),
                entry.body.length.bytes == record.response.body.available.count,
                selecting == nil || record.response.selecting == selecting
            else { return false }
            rangeCount += record.parts.reduce(0) { $0 + $1.ranges.ranges.count }
            steps += record.parts.map { ($0.key(key), .part($0, of: found.count)) }
            found.append(Found(key: key, entry: entry, own: record.response.body, response: record.response))
            return true
        }
    }
}
