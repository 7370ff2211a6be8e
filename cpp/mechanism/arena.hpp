// Scratch memory of the calling thread. Kernels allocate from it and release everything at once. After the first call with a mechanism, no more
// memory is requested from the system.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>

namespace sarrus {

class Arena {
  struct Block;

 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { release(); }

  template <class T> T* take(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    if (used_ + bytes > block_->size) grow(bytes);
    void* p = block_->begin() + used_;
    used_ += bytes;
#ifdef SARRUS_POISON  // memory is filled with 1e306 (as an address: invalid), so that reading it before writing is detected
    std::memset(p, 0x7f, bytes);
#endif
    return static_cast<T*>(p);
  }

  /// Scope of allocations: its destructor releases all memory that was taken since its construction.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), block_(arena.block_), used_(arena.used_) {}
    ~Scope() { arena_.block_ = block_, arena_.used_ = used_; }

   private:
    Arena& arena_;
    Block* block_;
    std::size_t used_;
  };

 private:
  static constexpr std::size_t alignment = 64;
  struct Block {
    Block* next;
    std::size_t size;
    char* begin() { return reinterpret_cast<char*>(this) + alignment; }
  };

  __attribute__((noinline)) void grow(std::size_t bytes) {
    // blocks up to the current one are kept, because pointers into them are in use; later blocks that are too small are replaced
    while (block_->next && block_->next->size < bytes) {
      Block* small = block_->next;
      block_->next = small->next;
      free(small);
    }
    if (!block_->next) {
      const std::size_t size = bytes > smallest ? bytes : smallest;
      const std::size_t total = (size + 2 * alignment - 1) / alignment * alignment;
      void* memory = ::operator new(total, std::align_val_t{alignment});
      block_->next = new (memory) Block{nullptr, total - alignment};
    }
    block_ = block_->next;
    used_ = 0;
  }
  static void free(Block* b) { ::operator delete(b, std::align_val_t{alignment}); }
  void release() {
    for (Block* b = first_.next; b;) {
      Block* next = b->next;
      free(b);
      b = next;
    }
  }

  static constexpr std::size_t smallest = 1 << 16;
  Block first_{nullptr, 0};
  Block* block_ = &first_;
  std::size_t used_ = 0;
};

// not inlined, because every inlined call would compute the address of the thread's arena again
__attribute__((noinline)) inline Arena& thread_arena() {
  static thread_local Arena arena;
  return arena;
}

}  // namespace sarrus
