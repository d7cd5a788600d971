// Does a number survive being read and written again? 64-bit ids and long decimals do not, and must not change on their way through a gateway.

/** Is this JSON number, read as a double and written again, still the same number? Negative zero is not. */
export function isExactNumber(source: string): boolean {
  const value = Number(source)
  return Number.isFinite(value) && canonical(source) === canonical(String(value))
}

/** Sign, digits without outer zeros, and the power of ten behind the last digit. */
function canonical(source: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  const kept = withoutTrailingZeros(digits)
  if (kept === '') return `${sign}0`
  return `${sign}${kept}e${Number(exponent) - fraction.length + (digits.length - kept.length)}`
}

/** `/0+$/` is quadratic on long runs of zeros. */
function withoutTrailingZeros(digits: string): string {
  let end = digits.length
  while (end > 0 && digits.charCodeAt(end - 1) === 48) end--
  return digits.slice(0, end)
}
