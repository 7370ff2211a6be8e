"""Functions of a state: those that the core answers for trees and loops, and the wrenches in all joints."""
