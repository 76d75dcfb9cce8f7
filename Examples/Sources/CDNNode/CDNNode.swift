import Foundation
import Larder
import Recipes

/// What an origin answers, and what the node keeps in the metadata of an entry: everything but the body.
struct Head: Codable {
    var status: Int
    var fields: [String: String]
}

struct Node: Sendable {
    let store: Store
    let origin: Origin

    /// The answer for a URL, and whether it came from the store.
    func answer(_ url: String) async throws -> (head: Head, body: [UInt8], isHit: Bool) {
        let key = Key(url)
        if let entry = try await store.get(key, includingExpired: true) {
            var head = try JSONDecoder().decode(Head.self, from: Data(entry.metadata))
            if store.isFresh(entry) {
                return (head, try await entry.body.bytes(), true)
            }
            // Stale: ask the origin whether it is still current.
            let fresh = await origin.answer(url, ifNoneMatch: head.fields["ETag"])
            if fresh.head.status == 304 {
                head.fields.merge(fresh.head.fields) { $1 }
                // The body stays where it is. Nothing happens if another thread has replaced the entry meanwhile.
                try await store.update(
                    entry, metadata: Array(JSONEncoder().encode(head)), lifetime: .duration(.seconds(fresh.maxAge)))
                return (head, try await entry.body.bytes(), true)
            }
            return try await keep(fresh, key)
        }
        return try await keep(origin.answer(url, ifNoneMatch: nil), key)
    }

    private func keep(_ answer: Origin.Answer, _ key: Key) async throws -> (head: Head, body: [UInt8], isHit: Bool) {
        let options = PutOptions(
            lifetime: .duration(.seconds(answer.maxAge)), tags: answer.surrogateKeys,
            metadata: try Array(JSONEncoder().encode(answer.head)))
        try await store.put(answer.body, for: key, options)
        return (answer.head, answer.body, false)
    }
}

/// Stands for the origin: what it sends is stale at once the first time.
actor Origin {
    struct Answer: Sendable {
        var head: Head
        var body: [UInt8] = []
        var maxAge: Int
        var surrogateKeys: [String] = []
    }

    private(set) var bodiesSent = 0

    func answer(_ url: String, ifNoneMatch tag: String?) -> Answer {
        let fields = ["ETag": "\"1\"", "Content-Type": "text/html"]
        if tag == fields["ETag"] { return Answer(head: Head(status: 304, fields: fields), maxAge: 60) }
        bodiesSent += 1
        let body = Array("page \(url)".utf8)
        return Answer(head: Head(status: 200, fields: fields), body: body, maxAge: 0, surrogateKeys: ["product-7"])
    }
}

@main
enum CDNNode {
    static func main() async throws {
        let configuration = Configuration(budget: Budget(bytes: .gigabytes(1), freeDiskFloor: .megabytes(100)))
        let node = Node(store: try Store(at: "node", configuration), origin: Origin())
        let url = "https://shop.example/product/7"

        let answers = try await [node.answer(url), node.answer(url), node.answer(url)]
        print("from the store:", answers.map(\.isHit), "bodies sent by the origin:", await node.origin.bodiesSent)
        expect(answers.map(\.isHit) == [false, true, true])
        await expect(node.origin.bodiesSent == 1)

        // A product changed: every page with its surrogate key is removed, on this node.
        _ = try await node.answer("https://shop.example/list?page=1")
        let purged = try await node.store.remove(.tag("product-7") && .host("shop.example"))
        print("purged \(purged) pages")
        expect(purged == 2)
        try await node.store.close()
    }
}
