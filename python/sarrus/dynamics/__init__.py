"""Functions of a state of trees and loops, their derivatives, and reactions of all joints."""
