-- PUT of bodies that differ, in the order of a file of names: wrk -t1 -s put.lua URL -- FILE LENGTH FIRST
-- A body is its number in 16 digits, and then the same letter to its length.
local names, payload, number = {}, "", 0

function init(arguments)
    for name in io.lines(arguments[1]) do names[#names + 1] = name end
    payload = string.rep("x", tonumber(arguments[2]) - 16)
    number = tonumber(arguments[3])
end

function request()
    local name = names[number % #names + 1]
    local body = string.format("%016d", number % #names) .. payload
    number = number + 1
    return wrk.format("PUT", name, nil, body)
end
