-- The customers of `orders`: wrk asks for one order after the other.
local article = 0

function request()
    article = (article + 7) % 1000
    local order = string.format('{"article": %d, "quantity": %d}', article, 1 + article % 3)
    return wrk.format("POST", "/orders", { ["Content-Type"] = "application/json" }, order)
end
