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
        fileprivate(set) var parts: [FoundPart] = []
        /// The response with the bytes of all entries.
        var response: StoredResponse
        /// The package that it is a member of.
        var package: PackageTable.Row?

        /// Where the bytes of a range are; empty if some are missing.
        func segments(_ range: Range<Int64>) -> [ResponseBody.Segment] {
            var segments: [ResponseBody.Segment] = []
            let all = [FoundPart(own.available, packedIn: entry.body)] + parts
            var position = range.lowerBound
            while position < range.upperBound {
                // The longest run of bytes from the position on, in one entry.
                let runs = all.compactMap { part in part.run(at: position).map { (part.bytes, $0.offset, $0.end) } }
                guard let (bytes, offset, runEnd) = runs.max(by: { $0.2 < $1.2 }) else { return [] }
                let end = min(runEnd, range.upperBound)
                segments.append(.stored(bytes, offset..<(offset + end - position)))
                position = end
            }
            return segments
        }

        /// The gzip member that is stored for all of the response, where one is.
        var member: Body? {
            parts.isEmpty && entry.body.length.bytes == response.body.total ? entry.body.compressedForm : nil
        }

        /// Counts the bytes of the parts in.
        fileprivate mutating func addUp() {
            guard !parts.isEmpty else { return }
            let available = own.available.union(parts.map(\.available))
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
        var search = search(primary, request)
        while let (key, kind) = try search.next() {
            switch kind {
            case .part:
                if let body = try await partialBody(of: key) {
                    search.take(.partial(body), of: key)
                } else {
                    search.take(try await store.getToSend(key).map { .entry($0) }, of: key)
                }
            case .entry: search.take(try await store.getToSend(key).map { .entry($0) }, of: key)
            case .table: search.take(try await peek(key).map { .entry($0) }, of: key)
            }
        }
        return search.result
    }

    /// Without a change of thread where that is not needed.
    private func peek(_ key: Key) async throws -> Entry? {
        switch try store.peekAtOnce(key) {
        case .hit(let entry): entry
        case .miss: nil
        case .due: try await store.performShort { [store] in try store.peek(key) }
        }
    }

    private func search(_ primary: String, _ request: HTTPFields) -> Search {
        Search(primary, request, rules, packages, now: now())
    }

    /// Without a change of thread where that is not needed.
    private func partialBody(of key: Key) async throws -> PartialBody? {
        switch try store.lookUpPartial(key) {
        case .hit(let body): body
        case .miss: nil
        case .due: try await store.performShort { [store] in try store.partialBody(of: key) }
        }
    }

    /// As above, waiting on the calling thread.
    func findWaiting(_ primary: String, for request: HTTPFields) throws -> [Found] {
        var search = search(primary, request)
        try run(&search) { try store.get($0, includingExpired: true) }
        return search.result
    }

    /// As above, without being an access.
    func peek(_ primary: String, for request: HTTPFields) throws -> [Found] {
        var search = search(primary, request)
        try run(&search) { try store.peek($0) }
        return search.result
    }

    /// As above; nil where the store would have to wait for a disk, and where it takes long: an event loop has others
    /// to serve.
    func findAtOnce(_ primary: String, for request: HTTPFields) throws -> [Found]? {
        var search = search(primary, request)
        while let (key, kind) = try search.next() {
            if search.isLong { return nil }
            if kind == .part {
                switch try store.lookUpPartial(key) {
                case .hit(let body):
                    search.take(.partial(body), of: key)
                    continue
                case .miss: break
                case .due: return nil
                }
            }
            switch try kind == .table
                ? store.peekAtOnce(key) : store.lookUp(key, includingExpired: true, decodesLater: true)
            {
            case .hit(let entry): search.take(.entry(entry), of: key)
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
    func findOne(_ key: Key, lookUp: (Key) throws -> Entry?) throws -> Found? {
        var search = Search(key)
        try run(&search, lookUp)
        return search.result.first
    }

    private func run(_ search: inout Search, _ lookUp: (Key) throws -> Entry?) throws {
        while let (key, kind) = try search.next() {
            if kind == .part, let body = try store.partialBody(of: key) {
                search.take(.partial(body), of: key)
            } else {
                search.take(try (kind == .table ? store.peek(key) : lookUp(key)).map { .entry($0) }, of: key)
            }
        }
    }

    /// What a lookup found.
    private enum Hit {
        case entry(Entry)
        /// A part in progress.
        case partial(PartialBody)
    }

    /// The lookups that a search takes: the primary key, the variants that it leads to, and the parts of responses;
    /// then, if nothing fresh was found, the members of packages.
    private struct Search {
        private enum Step {
            case primary
            case variant(SelectingFields)
            case part(StoredPart, of: Int)
            /// The entry that is there as long as the members of a package can be found.
            case owner(PackageTable.Row, member: Key)
            case member(PackageTable.Row)
        }

        private enum PackagesStep {
            case due
            case isAsking
            case done
        }

        /// What a key is looked up as.
        enum Kind {
            case entry
            case part
            case table
        }

        private let request: HTTPFields
        private let rules: CacheRules?
        private let primary: String
        private let packages: StoredPackages?
        private let now: Instant
        private var packagesStep = PackagesStep.due
        private var steps: [(key: Key, step: Step)]
        private var position = 0
        private var found: [Found] = []
        private var rangeCount = 0
        private var hasLostPart = false
        private var isSecond = false
        private var failure: (any Error)?
        /// Stored responses from before this moment give way to members that were found.
        private var superseding: Instant?

        init(
            _ primary: String, _ request: HTTPFields, _ rules: CacheRules, _ packages: StoredPackages, now: Instant
        ) {
            self.primary = primary
            self.request = request
            self.rules = rules
            // What a key policy or a method has added to the URL no package has.
            self.packages = primary.utf8.contains(0x20) ? nil : packages
            self.now = now
            steps = [(Key(primary), .primary)]
        }

        /// A single response, whatever selects it.
        init(_ key: Key) {
            primary = ""
            request = [:]
            rules = nil
            packages = nil
            now = Instant(milliseconds: 0)
            steps = [(key, .primary)]
        }

        /// Whether clients have made it long, by asking for many ranges of one response, or many variants.
        var isLong: Bool { steps.count > 16 || rangeCount > 64 }

        /// What to look up next; nil when everything is found.
        ///
        /// A part that is gone was displaced, or completed the response since that was looked up: then everything
        /// is looked up again, once, as the response lists other parts now.
        ///
        /// Most parts are in progress. What is not is looked up like an entry.
        mutating func next() throws -> (key: Key, kind: Kind)? {
            if let failure { throw failure }
            if position == steps.count, hasLostPart, !isSecond {
                isSecond = true
                (steps, position, found, rangeCount, packagesStep) = ([steps[0]], 0, [], 0, .due)
            }
            if position == steps.count, let packages, packagesStep == .due, !isAnswered(packages) {
                packagesStep = .isAsking
                return (packages.key, .table)
            }
            guard position < steps.count else { return nil }
            switch steps[position].step {
            case .part: return (steps[position].key, .part)
            case .primary, .variant, .owner, .member: return (steps[position].key, .entry)
            }
        }

        /// True if packages need not be asked: something fresh is stored under the URL, and gives way to none.
        private func isAnswered(_ packages: StoredPackages) -> Bool {
            if packages.isSuperseding.load(ordering: .relaxed) { return false }
            let tolerance = rules?.options.clockSkewToleranceMilliseconds ?? 0
            // Where there are no packages, as far as is known, it need not be the answer to this very request.
            let arePresent = packages.arePresent.load(ordering: .relaxed)
            let isFresh = found.contains {
                !$0.response.isInvalidated && !$0.response.policy.flags.contains(.noCache)
                    && $0.response.policy.isFresh(at: now, clockSkewTolerance: tolerance)
            }
            if !isFresh || !arePresent { return isFresh }
            for item in found where item.response.body.isComplete && matches(item) { return true }
            return false
        }

        /// What was found, without responses that have lost all their bytes.
        var result: [Found] {
            var result: [Found] = []
            for var found in found {
                if let superseding, found.package == nil, found.response.responseTime < superseding { continue }
                found.addUp()
                if found.response.body.isComplete || !found.response.body.available.ranges.isEmpty {
                    result.append(found)
                }
            }
            return result
        }

        mutating func take(_ hit: Hit?, of key: Key) {
            if packagesStep == .isAsking {
                packagesStep = .done
                return takePackages(hit)
            }
            let step = steps[position].step
            position += 1
            switch (step, hit) {
            case (.part, nil): hasLostPart = true
            case (.part(let part, let index), .partial(let body)?):
                FoundPart(part, in: body).map { found[index].parts.append($0) }
            case (.part(let part, let index), .entry(let entry)?):
                FoundPart(part, in: entry).map { found[index].parts.append($0) }
            case (.primary, .entry(let entry)?): takeListed(entry, key, nil)
            case (.variant(let selecting), .entry(let entry)?): takeListed(entry, key, selecting)
            case (.owner(let package, let member), .entry?): steps.append((member, .member(package)))
            case (.member(let package), .entry(let entry)?):
                if takeResponse(entry, key, nil) {
                    found[found.count - 1].package = package
                    superseding = package.supersedes.map { max(superseding ?? $0, $0) } ?? superseding
                }
            case (.primary, _), (.variant, _), (.owner, _), (.member, _): break
            }
        }

        private func matches(_ found: Found) -> Bool { found.response.selecting.matches(request) }

        private mutating func takePackages(_ hit: Hit?) {
            var entry: Entry?
            if case .entry(let table)? = hit { entry = table }
            do {
                for (package, key) in try packages?.table(entry).members(primary) ?? [] {
                    if package.isLast, found.contains(where: { $0.package == nil && matches($0) }) { continue }
                    if package.isWhole {
                        steps.append((PackageKeys.owner(package.generation), .owner(package, member: key)))
                    } else {
                        steps.append((key, .member(package)))
                    }
                }
            } catch {
                failure = error
            }
        }

        /// Takes a response, or the variants that a list leads to.
        private mutating func takeListed(_ entry: Entry, _ key: Key, _ selecting: SelectingFields?) {
            if !takeResponse(entry, key, selecting), selecting == nil, let rules,
                let index = VariantIndex(entry.metadata)
            {
                let primary = primary
                steps += rules.variantsToLookUp(index.variants, for: request).map {
                    (VariantIndex.key(primary, $0), .variant($0))
                }
            }
        }

        private mutating func takeResponse(_ entry: Entry, _ key: Key, _ selecting: SelectingFields?) -> Bool {
            // The body has to be as long as the record says.
            guard let record = StoredRecord(entry.metadata),
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
