import HTTPCaching
import HTTPTypes

/// Fields from `"Name: value"` lines; a line that begins with `@` has its value taken as seconds from `now` and
/// written as a date.
package func fields(_ lines: [String], now: Instant = Instant(seconds: 1_700_000_000)) -> HTTPFields {
    var fields = HTTPFields()
    for line in lines {
        let isDate = line.hasPrefix("@")
        let text = isDate ? String(line.dropFirst()) : line
        guard let colon = text.firstIndex(of: ":"), let name = HTTPField.Name(String(text[..<colon])) else {
            preconditionFailure("not a field line: \(line)")
        }
        var value = String(text[text.index(after: colon)...])
        while value.hasPrefix(" ") { value.removeFirst() }
        if isDate, let seconds = Int64(value) { value = HTTPDate.format(now.advanced(byMilliseconds: seconds * 1_000)) }
        fields.append(HTTPField(name: name, value: value))
    }
    return fields
}

/// A request for `https://example.org/resource`, or another path.
package func request(_ method: String = "GET", _ path: String = "/resource", _ lines: [String] = []) -> HTTPRequest {
    HTTPRequest(
        method: HTTPRequest.Method(method)!, scheme: "https", authority: "example.org", path: path,
        headerFields: fields(lines))
}

/// A response.
package func response(_ status: Int = 200, _ lines: [String] = [], now: Instant = start) -> HTTPResponse {
    HTTPResponse(status: .init(code: status), headerFields: fields(lines, now: now))
}

/// The time at which tests begin: 2023-11-14 22:13:20 GMT, not a whole second.
package let start = Instant(milliseconds: 1_700_000_000_250)

extension Instant {
    /// This instant some seconds later.
    package func after(_ seconds: Double) -> Instant { advanced(byMilliseconds: Int64(seconds * 1_000)) }
}
