import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A `CachedURLResponse` without its data, as the metadata of an entry has it: a binary property list.
struct StoredURLResponse {
    private enum Name {
        static let url = "url", status = "status", fields = "fields", info = "info", isInMemory = "memory"
    }

    private var values: [String: Any] = [:]

    /// - Parameters:
    ///   - cached: gives the policy and the user information.
    ///   - response: that of `cached`.
    init(_ cached: CachedURLResponse, _ response: HTTPURLResponse) {
        values[Name.url] = response.url?.absoluteString
        values[Name.status] = response.statusCode
        values[Name.fields] = response.allHeaderFields.reduce(into: [String: String]()) {
            $0["\($1.key)"] = "\($1.value)"
        }
        if cached.storagePolicy == .allowedInMemoryOnly { values[Name.isInMemory] = true }
        if let info = cached.userInfo as? [String: Any],
            PropertyListSerialization.propertyList(info, isValidFor: .binary)
        {
            values[Name.info] = info
        }
    }

    /// Nil for the metadata of an entry that is not a response.
    init?(_ metadata: [UInt8]) {
        guard
            let list = try? PropertyListSerialization.propertyList(from: Data(metadata), options: [], format: nil),
            let values = list as? [String: Any]
        else { return nil }
        self.values = values
    }

    func encoded() throws -> [UInt8] {
        [UInt8](try PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0))
    }

    /// The response with its data; nil where what is stored makes no response.
    func cachedResponse(_ data: Data) -> CachedURLResponse? {
        guard let text = values[Name.url] as? String, let url = URL(string: text) else { return nil }
        guard let status = values[Name.status] as? Int,
            let response = HTTPURLResponse(
                url: url, statusCode: status, httpVersion: "HTTP/1.1",
                headerFields: values[Name.fields] as? [String: String] ?? [:])
        else { return nil }
        let isInMemory = values[Name.isInMemory] as? Bool ?? false
        return CachedURLResponse(
            response: response, data: data, userInfo: values[Name.info] as? [String: Any],
            storagePolicy: isInMemory ? .allowedInMemoryOnly : .allowed)
    }
}
