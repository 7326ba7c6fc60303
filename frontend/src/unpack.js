// What is in the page: JSON, compressed with gzip, in base64, so that none of its characters can end the element that holds it.

/** The value that base64 text of gzipped JSON stands for. */
export async function unpack(text) {
  const packed = Uint8Array.from(atob(text.replace(/\s+/g, "")), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
