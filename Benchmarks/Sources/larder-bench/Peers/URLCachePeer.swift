import Foundation
import SystemPackage

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Foundation's URLCache as a disk cache: no memory tier, so that a hit is a hit of the disk.
final class URLCachePeer: Peer {
    private let cache: URLCache

    init(_ path: FilePath, _ options: PeerOptions) throws {
        let capacity = Int(options.budgetBytes ?? 8 << 30)
        #if canImport(FoundationNetworking)
            cache = URLCache(memoryCapacity: 0, diskCapacity: capacity, diskPath: path.string)
        #else
            cache = URLCache(
                memoryCapacity: 0, diskCapacity: capacity, directory: URL(fileURLWithPath: path.string))
        #endif
    }

    var maximumThreads: Int { 1 }

    func name(_ index: Int) -> Name {
        var name = Name(index)
        name.text = Name.text(index)
        name.request = URL(string: name.text).map { URLRequest(url: $0) }
        return name
    }

    func put(_ body: [UInt8], _ name: Name) throws {
        guard let request = name.request, let url = request.url,
            let response = HTTPURLResponse(
                url: url, statusCode: 200, httpVersion: "HTTP/1.1",
                headerFields: ["Cache-Control": "max-age=86400", "Content-Length": "\(body.count)"])
        else { throw BenchError("\(name.text) is not a URL") }
        cache.storeCachedResponse(CachedURLResponse(response: response, data: Data(body)), for: request)
    }

    func get(_ name: Name, _ scratch: Scratch) throws -> Int? {
        name.request.flatMap { cache.cachedResponse(for: $0)?.data.count }
    }

    func remove(_ name: Name) throws { if let request = name.request { cache.removeCachedResponse(for: request) } }
}
