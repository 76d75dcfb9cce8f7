import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// `No-Vary-Search`: draft-ietf-httpbis-no-vary-search-10.
struct URLVariationTests {
    private func parse(_ value: String) -> URLVariation? {
        URLVariation(of: response(200, ["No-Vary-Search: " + value]))
    }

    /// Section 4.2.1: values that leave every byte of the query in the key.
    @Test(arguments: [
        "key-order=\"not a boolean\"", "params=\"not an inner list\"", "params=(not-a-string)", "params=?0",
        "params=?1",
        "params", "params=?1, except=(\"x\")", "params=(\"a\"), except=(\"x\")", "params=(), except=()",
        "except=\"not an inner list\"", "except=(not-a-string)", "except=?1", "params=()", "key-order=?0", "unknown",
        "params=(\"a\"", "", "key-order=1",
    ]) func noVariation(_ value: String) {
        #expect(parse(value) == nil)
    }

    @Test func variations() throws {
        let order = try #require(parse("key-order"))
        #expect(!order.hasOrder && order.parameters == .allExcept([]))
        let params = try #require(parse("params=(\"a\" \"b\";x=1), other=5"))
        #expect(params.hasOrder && params.parameters == .allExcept([Array("a".utf8), Array("b".utf8)]))
        let except = try #require(parse("except=(\"x\"), key-order=?1"))
        #expect(!except.hasOrder && except.parameters == .only([Array("x".utf8)]))
        #expect(parse("except=()")?.parameters == .only([]))
        for variation in [order, params, except] { #expect(URLVariation(text: variation.text) == variation) }
        #expect(Set([order, params, except].map(\.text)).count == 3)
        for text in ["", "o", "xx", "kq;a"] { #expect(URLVariation(text: text) == nil, "\(text)") }
    }

    /// Section 5: which queries count as the same.
    @Test(
        arguments: [
            ("key-order", nil, "", true), ("key-order", "a=x", "%61=%78", true), ("key-order", "a=x&&&&", "a=x", true),
            ("key-order", "a=", "a", true), ("key-order", "a=%20", "a=+", true),
            ("key-order", "a=1&b=2", "b=2&a=1", true),
            ("key-order", "a=1&a=2", "a=2&a=1", false), ("key-order", "a=1", "a=2", false),
            ("key-order", "a=%C3%A9", "a=e%CC%81", false), ("key-order", "a=%3D&b", "a==&b=", true),
            ("params=(\"u\")", "u=1&a=2", "a=2&u=3", true), ("params=(\"u\")", "a=1&b=2", "b=2&a=1", false),
            ("params=(\"%C3%A9+x\")", "%c3%a9%20x=4", nil, true), ("except=(\"id\")", "id=1&x=2", "y=3&id=1", true),
            ("except=(\"id\")", "id=1", "id=2", false), ("except=()", "a=1", "b", true),
            ("params=(\"u\")", "a=%26u%3D1", "a=&u=1", false), ("key-order", "a=%2", "a=%252", true),
        ] as [(String, String?, String?, Bool)])
    func comparison(_ value: String, _ first: String?, _ second: String?, _ isSame: Bool) throws {
        let variation = try #require(parse(value))
        #expect((variation.canonical(first) == variation.canonical(second)) == isSame)
        #expect(!variation.canonical(first).contains(" "))
    }

    @Test func anotherVariationInAnUpdateRemoves() {
        let rules = CacheRules(.gateway)
        let stored = StoredResponse(
            head: response(200, ["ETag: \"1\"", "No-Vary-Search: key-order"]), requestTime: start, responseTime: start,
            body: .complete(length: 1),
            policy: rules.policy(for: response(200), requestTime: start, responseTime: start)
        )
        #expect(!rules.nominatesMore(response(304, ["ETag: \"1\""]), than: stored))
        #expect(!rules.nominatesMore(response(304, ["No-Vary-Search: key-order=?1"]), than: stored))
        #expect(rules.nominatesMore(response(304, ["No-Vary-Search: params=(\"a\")"]), than: stored))
    }
}
