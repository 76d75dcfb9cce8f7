/// A request as HTTP/1.1 sends it, without content.
/// - Parameters:
///   - target: the request's target.
///   - fields: lines such as `Accept: */*`.
public func get(
    _ target: String, _ fields: String..., version: String = "1.1", method: String = "GET",
    host: String = "example.org"
) -> String {
    "\(method) \(target) HTTP/\(version)\r\nHost: \(host)\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
}
