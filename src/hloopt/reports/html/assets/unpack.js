// A block of the page that is packed with gzip, as text.
async function unpack(id) {
  const chars = atob($(id).textContent), packed = new Uint8Array(chars.length);
  for (let k = 0; k < chars.length; k++) packed[k] = chars.charCodeAt(k);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
