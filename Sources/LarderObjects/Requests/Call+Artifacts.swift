import HTTPTypes
import Larder
import LarderHTTP
import LarderServer

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What Turborepo asks in addition to its artifacts, and the state of the server.
extension Call {
    /// The most of a list of hashes that is read, in bytes.
    private static let queryLimit = 1 << 20

    func artifacts(_ what: String) -> ServiceDecision {
        switch (what, request.head.method) {
        case ("status", .get), ("status", .head): .answer(json(["status": "enabled"]))
        // What a client reports of its hits is of no use here.
        case ("events", .post):
            .work { content in
                _ = try? await ObjectStore.gathered(content, limit: Self.queryLimit)
                return ServiceAnswer(200)
            }
        case ("", .post): .work { await artifacts(asked: $0) }
        default: .answer(ServiceAnswer(404, text: "There is no such call."))
        }
    }

    private struct Query: Codable {
        var hashes: [String]
    }

    private struct Known: Codable {
        var size: Int64
    }

    /// Which of many artifacts there are.
    private func artifacts(asked content: RequestBody?) async -> ServiceAnswer {
        do {
            let bytes = try await ObjectStore.gathered(content, limit: Self.queryLimit)
            guard let query = try? JSONDecoder().decode(Query.self, from: Data(bytes)) else {
                return ServiceAnswer(400, text: "This is not {\"hashes\": [...]}.")
            }
            let team = ObjectPath.team(request.head.path ?? "")
            let prefix = String(path.text.dropFirst())
            var result: [String: Known?] = [:]
            for hash in query.hashes.prefix(10_000) {
                let known: Known?
                if let key = try? ObjectPath.artifact(hash, of: team, below: prefix),
                    let found = try await objects.object(key)
                {
                    known = Known(size: found.body.length.bytes)
                } else {
                    known = nil
                }
                result[hash] = .some(known)
            }
            return json(result)
        } catch {
            return answer(to: error)
        }
    }

    private struct Status: Codable {
        var CurrSize: Int64
        var MaxSize: Int64
        var NumFiles: Int
        var ServerTime: Int64
    }

    /// The names are those of bazel-remote, whose tools read them.
    func status() async -> ServiceAnswer {
        do {
            let statistics = try await objects.store.performShort { [objects] in try objects.store.statistics() }
            return json(
                Status(
                    CurrSize: statistics.allocatedBytes.bytes, MaxSize: statistics.budget.bytes.bytes,
                    NumFiles: statistics.entryCount, ServerTime: Int64(Date().timeIntervalSince1970)))
        } catch {
            return ServiceAnswer(503, text: "The store cannot be read.")
        }
    }

    private func json(_ value: some Encodable) -> ServiceAnswer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let bytes = (try? encoder.encode(value)).map { Array($0) } ?? []
        return ServiceAnswer(200, [.contentType: "application/json"], body: ResponseBody([.bytes(bytes)]))
    }
}
