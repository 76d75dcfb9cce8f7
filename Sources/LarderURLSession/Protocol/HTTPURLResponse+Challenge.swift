import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension HTTPURLResponse {
    /// The realm of a challenge of the basic scheme (RFC 7617 section 2); nil for every other response.
    var basicRealm: String? {
        guard statusCode == 401, let value = value(forHTTPHeaderField: "WWW-Authenticate"),
            value.lowercased().hasPrefix("basic "),
            let match = value.firstMatch(of: /(?i)[ ,]realm\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/)
        else { return nil }
        return match.1.map { String($0).replacing(/\\(.)/) { $0.1 } } ?? match.2.map { String($0) }
    }

    /// Without a challenge that Linux' Foundation would never answer: a task without a delegate waits forever.
    var withoutChallenge: HTTPURLResponse {
        guard statusCode == 401, value(forHTTPHeaderField: "WWW-Authenticate") != nil else { return self }
        return renamingChallenge ?? self
    }

    /// Without a challenge that Linux' Foundation cannot take: it ends the process for another scheme than `Basic`
    /// once the delegate gives a credential, and for a `Basic` that is written in another way than `Basic realm="..."`.
    var withSafeChallenge: HTTPURLResponse {
        guard statusCode == 401, let value = value(forHTTPHeaderField: "WWW-Authenticate"),
            !value.hasPrefix("Basic realm=\"")
        else { return self }
        return renamingChallenge ?? self
    }

    /// The challenge under the name `Larder-WWW-Authenticate`, which Foundation does not look at.
    private var renamingChallenge: HTTPURLResponse? {
        guard let url else { return nil }
        var fields: [String: String] = [:]
        for (name, value) in allHeaderFields {
            let isChallenge = "\(name)".lowercased() == "www-authenticate"
            fields[isChallenge ? "Larder-WWW-Authenticate" : "\(name)"] = "\(value)"
        }
        return HTTPURLResponse(url: url, statusCode: statusCode, httpVersion: "HTTP/1.1", headerFields: fields)
    }
}
