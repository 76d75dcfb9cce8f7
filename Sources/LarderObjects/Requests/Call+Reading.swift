import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP
import LarderServer

/// GET and HEAD.
extension Call {
    private var isHead: Bool { request.head.method == .head }

    func read() -> ServiceDecision {
        do {
            switch path.name {
            case .blob(let digest): return try readBlob(digest)
            case .result(let key): return try readResult(key)
            case .file(let key), .record(let key), .artifact(let key): return try read(key)
            case .collection, .status, .artifacts: return .answer(miss)
            }
        } catch {
            return .answer(miss(after: error))
        }
    }

    private func read(_ key: Key) throws -> ServiceDecision {
        switch try objects.lookUp(key) {
        case .object(let object): return .answer(hit(object))
        case .none: return .answer(miss)
        case .due: return .work { _ in await answered { try await objects.object(key).map(hit) } }
        }
    }

    private func readBlob(_ digest: Digest) throws -> ServiceDecision {
        if digest == ObjectStore.empty { return .answer(emptyBlob) }
        if case .object(let object) = try objects.lookUp(Key(digest)), !isHead || objects.promises.isPromised(digest) {
            return .answer(hit(object))
        }
        return .work { _ in
            await answered {
                guard let object = try await objects.blob(digest) else { return nil }
                // A client that asks whether a blob is there counts on it.
                if isHead, try await objects.promises.promise([digest]) {
                    guard try await objects.store.missing(of: [digest], lengths: [:]).isEmpty else { return nil }
                }
                return hit(object)
            }
        }
    }

    private func readResult(_ key: Key) throws -> ServiceDecision {
        if case .none = try objects.lookUp(key) { return .answer(miss) }
        return .work { _ in
            await answered {
                try await objects.result(key).map { hit($0.object) }
            }
        }
    }

    private func answered(_ body: () async throws -> ServiceAnswer?) async -> ServiceAnswer {
        do { return try await body() ?? miss } catch { return miss(after: error) }
    }

    private var emptyBlob: ServiceAnswer {
        objects.counters.hits.add(1, ordering: .relaxed)
        var fields = ObjectNotes([:]).fields
        if isHead { fields[.contentLength] = "0" }
        return ServiceAnswer(200, fields, isHit: true)
    }

    /// The entity tag of what has this content.
    static func tag(_ digest: Digest) -> String { "\"\(digest.hexadecimal)\"" }

    /// Whether `If-Match` or `If-None-Match` has this tag, the latter by weak comparison (RFC 9110 section 13.1).
    func names(_ tag: String, in field: HTTPField.Name) -> Bool {
        request.head.headerFields[values: field].contains { value in
            value.split(separator: ",").contains { member in
                let member = member.trimming { $0 == " " || $0 == "\t" }
                return member == "*" || member == tag || field == .ifNoneMatch && member == "W/" + tag
            }
        }
    }

    /// Whether a precondition forbids to do anything (RFC 9110 sections 13.1.1 and 13.1.2).
    /// - Parameter tag: of what is there.
    func isRefused(_ tag: String?) -> Bool {
        if request.head.headerFields.contains(.ifMatch) { return !(tag.map { names($0, in: .ifMatch) } ?? false) }
        return tag.map { names($0, in: .ifNoneMatch) } ?? false
    }

    var refused: ServiceAnswer { ServiceAnswer(412, text: "The object does not meet the precondition.") }

    private func hit(_ object: StoredObject) -> ServiceAnswer {
        if request.head.headerFields.contains(.ifMatch), isRefused(Self.tag(object.digest)) { return refused }
        objects.counters.hits.add(1, ordering: .relaxed)
        var fields = object.metadata.isEmpty ? ObjectNotes([:]).fields : ObjectNotes(metadata: object.metadata).fields
        let tag = Self.tag(object.digest)
        fields[.eTag] = tag
        if names(tag, in: .ifNoneMatch) { return ServiceAnswer(304, fields, isHit: true) }
        fields[.acceptRanges] = "bytes"
        let length = object.body.length.bytes
        switch range(of: length, tag) {
        case .whole:
            // RFC 9110 section 9.3.2: what GET would say.
            if isHead { fields[.contentLength] = String(length) }
            return ServiceAnswer(200, fields, body: Self.body(object, 0..<length), isHit: true)
        case .part(let part):
            fields[.contentRange] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(length)"
            return ServiceAnswer(206, fields, body: Self.body(object, part), isHit: true)
        case .unsatisfiable:
            return ServiceAnswer(416, [.contentRange: "bytes */\(length)", .acceptRanges: "bytes"])
        }
    }

    private static func body(_ object: StoredObject, _ range: Range<Int64>) -> ResponseBody {
        ResponseBody(range.isEmpty ? [] : [.stored(.complete(object.body), range)])
    }

    private enum Extent {
        case whole
        case part(Range<Int64>)
        case unsatisfiable
    }

    /// What `Range` asks for (RFC 9110 section 14.2): of GET only, and not of a content other than `If-Range` names.
    /// Several ranges are answered with the whole, as section 14.2 allows.
    private func range(of length: Int64, _ tag: String) -> Extent {
        let fields = request.head.headerFields
        guard !isHead, let value = fields[.range], fields[.ifRange].map({ $0 == tag }) ?? true,
            case .bytes(let ranges) = RangeField.parse(Array(value.utf8)), ranges.specifications.count == 1,
            !ranges.asksForNothing(of: length)
        else { return .whole }
        return ranges.resolved(length: length).first.map { .part($0) } ?? .unsatisfiable
    }
}

extension Substring {
    fileprivate func trimming(_ isSpace: (Character) -> Bool) -> Substring {
        var rest = drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return rest
    }
}
