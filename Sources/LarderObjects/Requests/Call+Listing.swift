import HTTPTypes
import Larder
import LarderHTTP
import LarderServer

/// PROPFIND (RFC 4918 section 9.1), as far as build tools use it: whether something is there, and how long it is.
extension Call {
    /// The most members of a directory that are listed.
    private static let limit = 10_000

    func list() async -> ServiceAnswer {
        do {
            let listed: [Item]
            switch path.name {
            case .collection(let prefix): listed = try await members(of: prefix)
            case .file(let key), .record(let key), .artifact(let key), .result(let key):
                let found = try await objects.store.performShort { [objects] in try objects.store.attributes(of: key) }
                if let attributes = found {
                    listed = [Item(path.text, attributes)]
                } else {
                    guard try await isCollection(path.text + "/") else { return miss }
                    listed = try await members(of: path.text + "/")
                }
            case .blob(let digest):
                guard let object = try await objects.blob(digest) else { return miss }
                listed = [Item(href: path.text, length: object.body.length.bytes)]
            case .status, .artifacts: return miss
            }
            return answer(listed)
        } catch {
            return miss(after: error)
        }
    }

    /// One thing that is listed.
    private struct Item {
        var href: String
        /// Nil for a directory.
        var length: Int64?
        var seconds: Int64?

        init(href: String, length: Int64? = nil) {
            self.href = href
            self.length = length
        }

        init(_ href: String, _ attributes: Attributes) {
            self.href = href
            length = attributes.length.bytes
            seconds = attributes.stored.microseconds / 1_000_000
        }
    }

    private func isCollection(_ prefix: String) async throws -> Bool {
        for try await _ in try objects.store.entries(.prefix(Key(prefix))) { return true }
        return false
    }

    private func members(of prefix: String) async throws -> [Item] {
        var items = [Item(href: prefix)]
        // "infinity" would list the store.
        guard request.head.headerFields[.depth] == "1" else { return items }
        var last = ""
        for try await attributes in try objects.store.entries(.prefix(Key(prefix))) {
            let rest = attributes.key.description.dropFirst(prefix.count)
            let name = rest.prefix { $0 != "/" }
            guard !name.isEmpty, name != last else { continue }
            last = String(name)
            items.append(
                name.count == rest.count ? Item(prefix + name, attributes) : Item(href: prefix + name + "/"))
            if items.count > Self.limit { break }
        }
        return items
    }

    private func answer(_ items: [Item]) -> ServiceAnswer {
        var text = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n"
        for item in items {
            text += "<D:response><D:href>\(Self.href(item.href))</D:href><D:propstat><D:prop>"
            if let length = item.length {
                text += "<D:resourcetype/><D:getcontentlength>\(length)</D:getcontentlength>"
            } else {
                text += "<D:resourcetype><D:collection/></D:resourcetype>"
            }
            // Clients fail on a resource without it.
            text += "<D:getlastmodified>\(LogTime.http(item.seconds ?? 0))</D:getlastmodified>"
            text += "</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n"
        }
        text += "</D:multistatus>\n"
        return ServiceAnswer(
            207, [.contentType: "application/xml; charset=utf-8"], body: ResponseBody([.bytes(Array(text.utf8))]))
    }

    /// A path as RFC 3986 wants it, which leaves nothing that XML could take for its own.
    private static func href(_ path: String) -> String {
        var text = ""
        for byte in path.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E, 0x2F:
                text.unicodeScalars.append(.init(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                text += digits.count == 1 ? "%0" + digits : "%" + digits
            }
        }
        return text
    }
}
