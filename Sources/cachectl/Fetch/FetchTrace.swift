import HTTPTypes
import LarderHTTP

/// A response as `--include` and `--verbose` show it.
enum FetchTrace {
    /// The status line and the fields, each with a prefix and a suffix.
    static func head(_ head: HTTPResponse, _ before: String, _ after: String) -> String {
        var text = "\(before)HTTP/1.1 \(head.status.code) \(head.status.reasonPhrase)\(after)"
        for field in head.headerFields { text += "\(before)\(field.name.rawName): \(field.value)\(after)" }
        return text
    }

    static func text(_ response: FetchResponse) -> String {
        var text =
            "* response from \(response.source == .network ? "the origin" : "the store (\(response.source.rawValue))")"
        if let age = response.ageSeconds { text += ", age \(age) s" }
        if let fresh = response.freshSeconds { text += fresh > 0 ? ", fresh for \(fresh) s" : ", stale" }
        return text + "\n" + head(response.head, "< ", "\n") + "<\n"
    }
}
