-- Tables, strings, closures, coroutines, sorting and garbage: arg[1] scales the work.
local scale = tonumber(arg[1]) or 1

local function sieve(n)
  local composite, primes = {}, {}
  for i = 2, n do
    if not composite[i] then
      primes[#primes + 1] = i
      for j = i * i, n, i do composite[j] = true end
    end
  end
  return primes
end

local function queens(n)
  local count, columns, up, down = 0, {}, {}, {}
  local function place(row)
    if row > n then count = count + 1 return end
    for column = 1, n do
      if not (columns[column] or up[row + column] or down[row - column + n]) then
        columns[column], up[row + column], down[row - column + n] = true, true, true
        place(row + 1)
        columns[column], up[row + column], down[row - column + n] = nil, nil, nil
      end
    end
  end
  place(1)
  return count
end

local function words(count)
  local seen, text = {}, {}
  for i = 1, count do
    local word = string.format("w%d", (i * 7919) % 997)
    seen[word] = (seen[word] or 0) + 1
    text[#text + 1] = word
  end
  local joined, total = table.concat(text, " "), 0
  for word in joined:gmatch("%a(%d+)") do total = (total + tonumber(word)) % 1000003 end
  local keys = {}
  for word in pairs(seen) do keys[#keys + 1] = word end
  table.sort(keys, function(a, b) return seen[a] > seen[b] or (seen[a] == seen[b] and a < b) end)
  return total, keys[1], #joined:gsub("w1", "x")
end

local Point = {}
Point.__index = Point
Point.__add = function(a, b) return setmetatable({x = a.x + b.x, y = a.y + b.y}, Point) end
function Point:norm() return self.x * self.x + self.y * self.y end

local function points(count)
  local sum = setmetatable({x = 0, y = 0}, Point)
  for i = 1, count do sum = sum + setmetatable({x = i % 3, y = i % 5}, Point) end
  return sum:norm()
end

local function generator(count)
  local produce = coroutine.wrap(function() for i = 1, count do coroutine.yield(i) end end)
  local sum = 0
  for value in produce do sum = sum + value end
  return sum
end

for _ = 1, scale do
  print(#sieve(20000), queens(6), words(4000))
  print(points(20000), generator(5000))
end
