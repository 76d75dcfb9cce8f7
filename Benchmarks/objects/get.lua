-- GET of random names of a file, one name a line: wrk -s get.lua URL -- FILE
local names = {}

function init(arguments)
    for name in io.lines(arguments[1]) do names[#names + 1] = name end
    math.randomseed(1)
end

function request() return wrk.format("GET", names[math.random(#names)]) end
